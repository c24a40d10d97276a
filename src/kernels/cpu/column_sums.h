// kernels/cpu/column_sums.h
//
// Gradients of biases and norm weights are sums over all rows, one a column. They are cut by
// column, so each sum is made by one thread, in the order of the rows: blocks of rows in float,
// then the blocks.
#pragma once

#include <cstdint>

namespace gruca::kernels {

inline constexpr std::int64_t kStripColumns = 64;  // Of one piece of work.
inline constexpr std::int64_t kStripRows = 128;    // Of one block.

struct ColumnSums {
    float* dweight_c = nullptr;  // += column sums of dy * (x - mean) * rstd; null: not wanted.
    float* dbias_c = nullptr;    // += column sums of dy; null: not wanted.
    const float* dy_nc;
    const float* x_nc = nullptr;
    const float* mean_n = nullptr;  // Null: zero.
    const float* rstd_n = nullptr;
    std::int64_t n;
    std::int64_t c;
};

void add_column_sums(const ColumnSums& args);

}  // namespace gruca::kernels
