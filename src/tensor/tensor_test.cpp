#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace gruca::tensor {
namespace {

template <class Function>
ErrorCode code_thrown_by(Function function) {
    try {
        function();
    } catch (const Error& error) {
        return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::internal;
}

bool is_aligned(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % kAlignmentBytes == 0;
}

TEST(Dtype, names_are_read_back_and_unknown_ones_refused) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
        EXPECT_EQ(parse_dtype(name(dtype)), dtype);
    }
    EXPECT_EQ(bytes_of(Dtype::bf16), 2u);
    EXPECT_EQ(bytes_of(dtype_of<double>), sizeof(double));
    EXPECT_EQ(code_thrown_by([] { parse_dtype("f32"); }), ErrorCode::invalid_argument);
}

TEST(Shape, counts_elements_of_scalars_empty_and_ordinary_shapes) {
    EXPECT_EQ(element_count({}), 1);
    EXPECT_EQ(element_count({3, 0, 5}), 0);
    EXPECT_EQ(element_count({3, 4, 5}), 60);
    EXPECT_EQ(to_string({3, 4}), "[3, 4]");
}

TEST(Shape, a_shape_from_a_bad_file_is_refused_before_it_overflows) {
    const std::int64_t huge = std::int64_t{1} << 40;
    EXPECT_EQ(code_thrown_by([&] { element_count({huge, huge}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_thrown_by([] { element_count({2, -1}); }), ErrorCode::invalid_argument);
}

TEST(Buffer, starts_aligned_and_zero_at_every_size) {
    for (const std::int64_t count : {1, 17, 4096, 3'000'000}) {
        const Buffer<float> buffer(count);
        EXPECT_TRUE(is_aligned(buffer.data()));
        for (const float value : buffer.span()) ASSERT_EQ(value, 0.0f);
    }
}

TEST(Buffer, moving_leaves_the_source_empty) {
    Buffer<double> first(3);
    first[2] = 7;
    Buffer<double> second = std::move(first);
    EXPECT_EQ(second[2], 7);
    EXPECT_EQ(first.size(), 0);  // NOLINT: the promise under test.
    first = std::move(second);
    EXPECT_EQ(first[2], 7);
}

TEST(Buffer, more_memory_than_there_is_says_so) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the address sanitizer ends the program instead";
#endif
    EXPECT_EQ(code_thrown_by([] { Buffer<double> buffer(std::int64_t{1} << 50); }),
              ErrorCode::resource_exhausted);
}

}  // namespace
}  // namespace gruca::tensor
