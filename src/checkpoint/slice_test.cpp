#include "checkpoint/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace gruca::checkpoint {
namespace {

using tensor::element_count;
using tensor::Shape;

// Every element of a tensor is its own position, so that a copy to a wrong place shows.
std::vector<int> numbered(const Shape& shape) {
    std::vector<int> values(static_cast<std::size_t>(element_count(shape)));
    std::iota(values.begin(), values.end(), 0);
    return values;
}

std::vector<int> taken_out(const Shape& shape, const Box& box) {
    const Box all = whole(shape);
    const auto from = numbered(shape);
    std::vector<int> to(static_cast<std::size_t>(element_count(box.extent)));
    copy_box({box, std::as_writable_bytes(std::span(to))}, {all, std::as_bytes(std::span(from))},
             box, sizeof(int));
    return to;
}

TEST(Box, a_part_of_a_matrix_is_taken_out_row_by_row) {
    EXPECT_THAT(taken_out({3, 4}, {{1, 1}, {2, 2}}), testing::ElementsAre(5, 6, 9, 10));
    EXPECT_THAT(taken_out({3, 4}, {{2, 0}, {1, 4}}), testing::ElementsAre(8, 9, 10, 11));
    EXPECT_THAT(taken_out({2, 2, 3}, {{0, 1, 1}, {2, 1, 2}}), testing::ElementsAre(4, 5, 10, 11));
    EXPECT_THAT(taken_out({5}, {{3}, {2}}), testing::ElementsAre(3, 4));
    EXPECT_THAT(taken_out({}, {{}, {}}), testing::ElementsAre(0));
}

TEST(Box, pieces_of_any_size_put_together_are_the_whole) {
    for (const Shape& shape : {Shape{7, 5}, Shape{2, 3, 4}, Shape{11}, Shape{}, Shape{1, 1, 9}}) {
        for (std::int64_t elements_max = 1; elements_max < 30; ++elements_max) {
            std::vector<int> together;
            for (const Box& piece : cut(whole(shape), elements_max)) {
                EXPECT_LE(element_count(piece.extent), elements_max);
                for (const int value : taken_out(shape, piece)) together.push_back(value);
            }
            EXPECT_EQ(together, numbered(shape)) << tensor::to_string(shape) << elements_max;
        }
    }
    EXPECT_TRUE(cut(whole({0, 3}), 10).empty());
}

TEST(Box, intersections) {
    const Box a{{0, 2}, {4, 4}};
    EXPECT_EQ(intersection(a, {{2, 0}, {9, 3}}), (Box{{2, 2}, {2, 1}}));
    EXPECT_EQ(intersection(a, {{4, 2}, {1, 1}}), std::nullopt);
    EXPECT_EQ(intersection(a, {{0, 6}, {4, 1}}), std::nullopt);
    EXPECT_EQ(intersection(Box{}, Box{}), Box{});
}

TEST(Box, a_box_outside_its_tensor_is_refused) {
    const Shape shape = {3, 4};
    EXPECT_NO_THROW(require_within(whole(shape), shape));
    const std::int64_t huge = INT64_MAX;
    for (const Box& bad :
         {Box{{0}, {3}}, Box{{0, 0}, {4, 4}}, Box{{-1, 0}, {3, 4}}, Box{{1, 0}, {3, 4}},
          Box{{0, 0}, {-1, 4}}, Box{{0, 4}, {1, huge}}, Box{{huge, 0}, {1, 1}}}) {
        EXPECT_THROW(require_within(bad, shape), Error) << to_string(bad);
    }
}

}  // namespace
}  // namespace gruca::checkpoint
