#include "checkpoint/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/boundary.h"

namespace gruca::checkpoint {
namespace {

using tensor::Dtype;

SourceSlice slice(const std::string& name, tensor::Shape shape, Box box) {
    return {.name = name, .dtype = Dtype::f32, .shape = shape, .box = box, .bytes = {}};
}
SourceSlice slice(const std::string& name, const tensor::Shape& shape) {
    return slice(name, shape, whole(shape));
}

std::vector<std::size_t> bytes_by_rank(const Plan& plan) {
    std::vector<std::size_t> bytes;
    for (const auto& pieces : plan.of_rank) {
        bytes.push_back(std::accumulate(pieces.begin(), pieces.end(), std::size_t{0},
                                        [&](std::size_t sum, const PlannedPiece& piece) {
                                            return sum + plan.bytes_of(piece);
                                        }));
    }
    return bytes;
}

bool is_refused(const std::vector<std::vector<SourceSlice>>& ranks) {
    std::vector<std::string> descriptions;
    for (const auto& slices : ranks) descriptions.push_back(describe(slices));
    const auto error = run_guarded([&] { make_plan(descriptions); });
    return error && error->code() == ErrorCode::invalid_argument;
}

TEST(Plan, what_all_ranks_have_is_written_once_and_shared_evenly) {
    // 40 MiB, 4 KiB, a scalar.
    const std::string all = describe(
        std::vector{slice("embedding", {10'240, 1024}), slice("norm", {1024}), slice("scale", {})});
    const Plan plan = make_plan({all, all, all, all});
    const auto bytes = bytes_by_rank(plan);
    EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}),
              4u * (10'240 * 1024 + 1024 + 1));
    EXPECT_LE(*std::max_element(bytes.begin(), bytes.end()),
              *std::min_element(bytes.begin(), bytes.end()) + kPieceBytesMax);
    for (const auto& pieces : plan.of_rank) {
        for (const PlannedPiece& piece : pieces) EXPECT_LE(plan.bytes_of(piece), kPieceBytesMax);
    }
}

TEST(Plan, what_only_one_rank_has_is_written_by_that_rank) {
    const Plan plan = make_plan({describe(std::vector{slice("w", {4, 6}, {{0, 0}, {4, 3}})}),
                                 describe(std::vector{slice("w", {4, 6}, {{0, 3}, {4, 3}})})});
    EXPECT_EQ(plan.of_rank[0][0].box, (Box{{0, 0}, {4, 3}}));
    EXPECT_EQ(plan.of_rank[1][0].box, (Box{{0, 3}, {4, 3}}));
}

TEST(Plan, ranks_that_contradict_each_other_are_refused) {
    EXPECT_FALSE(is_refused({{slice("w", {4, 6})}, {slice("w", {4, 6})}}));
    EXPECT_FALSE(is_refused({{slice("w", {4, 6})}, {}}));
    EXPECT_TRUE(is_refused({{slice("w", {4, 6})}, {slice("w", {4, 7})}}));
    auto other_type = slice("w", {4, 6});
    other_type.dtype = Dtype::f64;
    EXPECT_TRUE(is_refused({{slice("w", {4, 6})}, {other_type}}));
    EXPECT_TRUE(is_refused({{slice("w", {4, 6}), slice("w", {4, 6})}}));
}

TEST(Plan, overlaps_and_gaps_are_refused) {
    EXPECT_TRUE(is_refused({{slice("w", {4}, {{0}, {3}})}, {slice("w", {4}, {{1}, {3}})}}));
    EXPECT_TRUE(is_refused({{slice("w", {4}, {{0}, {2}})}, {slice("w", {4}, {{3}, {1}})}}));
    EXPECT_TRUE(is_refused({{slice("w", {4}, {{2}, {3}})}}));
}

}  // namespace
}  // namespace gruca::checkpoint
