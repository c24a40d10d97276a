// Goto's scheme: a block of B, packed into panels as wide as the micro-kernel's tile, stays in the
// outer caches; panels of A pass by it; the tile itself lives in registers.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these two in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"
#include "tensor/buffer.h"

#ifndef GRUCA_KERNELS_CPU_GEMM_ONCE
#define GRUCA_KERNELS_CPU_GEMM_ONCE
namespace gruca::kernels {

constexpr std::int64_t kDepthMax = 256;     // k of a packed block.
constexpr std::int64_t kRowsMax = 144;      // Rows of a packed block of A; a multiple of 6 and 12.
constexpr std::int64_t kColumnsMax = 1024;  // Columns of a packed block of B.

struct PackingSpace {
    tensor::Buffer<float> a{kRowsMax * kDepthMax};
    tensor::Buffer<float> b{kColumnsMax * kDepthMax};
};

// One for each thread, so that threads never share a panel.
inline PackingSpace& packing_space() {
    thread_local PackingSpace space;
    return space;
}

}  // namespace gruca::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr std::int64_t kLanes = HWY_LANES(float);
constexpr std::int64_t kTileColumns = 2 * kLanes;
// Accumulators, two vectors of B and one of A fill the registers: 16 of them, or 32 in AVX-512.
constexpr std::int64_t kTileRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;

// Where one tile of C is, and what becomes of it.
struct Tile {
    float* c;
    std::int64_t ldc;
    std::int64_t columns;  // At most kTileColumns.
    const float* bias;     // Or null.
    bool accumulate;
};

template <std::int64_t Rows>
HWY_INLINE void write_tile(const V (&sum)[Rows][2], const Tile& tile) {
    const D d;
    if (tile.columns == kTileColumns) {
#pragma GCC unroll 12
        for (std::int64_t r = 0; r < Rows; ++r) {
            float* c = tile.c + r * tile.ldc;
            V first = sum[r][0];
            V second = sum[r][1];
            if (tile.bias) {
                first = hn::Add(first, hn::LoadU(d, tile.bias));
                second = hn::Add(second, hn::LoadU(d, tile.bias + kLanes));
            } else if (tile.accumulate) {
                first = hn::Add(hn::LoadU(d, c), first);
                second = hn::Add(hn::LoadU(d, c + kLanes), second);
            }
            hn::StoreU(first, d, c);
            hn::StoreU(second, d, c + kLanes);
        }
        return;
    }
    alignas(64) float row[kTileColumns];
#pragma GCC unroll 12
    for (std::int64_t r = 0; r < Rows; ++r) {
        float* c = tile.c + r * tile.ldc;
        hn::Store(sum[r][0], d, row);
        hn::Store(sum[r][1], d, row + kLanes);
        for (std::int64_t j = 0; j < tile.columns; ++j) {
            c[j] = tile.bias ? row[j] + tile.bias[j] : tile.accumulate ? c[j] + row[j] : row[j];
        }
    }
}

// A tile of `Rows` rows: a[r * row_step + p * depth_step] times the packed panel b.
template <std::int64_t Rows>
void multiply_tile(std::int64_t depth, const float* HWY_RESTRICT a, std::int64_t row_step,
                   std::int64_t depth_step, const float* HWY_RESTRICT b, const Tile& tile) {
    const D d;
    V sum[Rows][2];
#pragma GCC unroll 12
    for (std::int64_t r = 0; r < Rows; ++r) {
        // C is written once, far apart: fetched now, its lines arrive while the tile is summed.
        __builtin_prefetch(tile.c + r * tile.ldc, 1);
        __builtin_prefetch(tile.c + r * tile.ldc + tile.columns - 1, 1);
        sum[r][0] = sum[r][1] = hn::Zero(d);
    }
    for (std::int64_t p = 0; p < depth; ++p) {
        const V b0 = hn::Load(d, b + p * kTileColumns);
        const V b1 = hn::Load(d, b + p * kTileColumns + kLanes);
#pragma GCC unroll 12
        for (std::int64_t r = 0; r < Rows; ++r) {
            const V x = hn::Set(d, a[r * row_step]);
            sum[r][0] = hn::MulAdd(x, b0, sum[r][0]);
            sum[r][1] = hn::MulAdd(x, b1, sum[r][1]);
        }
        a += depth_step;
    }
    write_tile<Rows>(sum, tile);
}

template <std::int64_t Rows>
void multiply_rows(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t row_step,
                   std::int64_t depth_step, const float* b, const Tile& tile) {
    if constexpr (Rows > 1) {
        if (rows < Rows) {
            return multiply_rows<Rows - 1>(rows, depth, a, row_step, depth_step, b, tile);
        }
    }
    multiply_tile<Rows>(depth, a, row_step, depth_step, b, tile);
}

// Panels of kTileColumns columns, depth by depth; missing columns are zero.
void pack_b(const Gemm& g, std::int64_t p0, std::int64_t depth, std::int64_t n0,
            std::int64_t columns, float* HWY_RESTRICT to) {
    for (std::int64_t j = 0; j < columns; j += kTileColumns) {
        const std::int64_t width = std::min(kTileColumns, columns - j);
        if (g.transpose_b) {
            const float* from = g.b + (n0 + j) * g.ldb + p0;
            if (width == kTileColumns) {
                for (std::int64_t p = 0; p < depth; ++p) {
#pragma GCC unroll 32
                    for (std::int64_t i = 0; i < kTileColumns; ++i) {
                        to[p * kTileColumns + i] = from[i * g.ldb + p];
                    }
                }
            } else {
                std::fill(to, to + depth * kTileColumns, 0.0f);
                for (std::int64_t i = 0; i < width; ++i) {
                    for (std::int64_t p = 0; p < depth; ++p) {
                        to[p * kTileColumns + i] = from[i * g.ldb + p];
                    }
                }
            }
        } else {
            const D d;
            for (std::int64_t p = 0; p < depth; ++p) {
                const float* from = g.b + (p0 + p) * g.ldb + n0 + j;
                float* row = to + p * kTileColumns;
                if (width == kTileColumns) {
                    hn::Store(hn::LoadU(d, from), d, row);
                    hn::Store(hn::LoadU(d, from + kLanes), d, row + kLanes);
                } else {
                    std::copy(from, from + width, row);
                    std::fill(row + width, row + kTileColumns, 0.0f);
                }
            }
        }
        to += depth * kTileColumns;
    }
}

// Panels of kTileRows columns of the transposed A, read row by row as they lie in memory.
void pack_transposed_a(const Gemm& g, std::int64_t p0, std::int64_t depth, std::int64_t m0,
                       std::int64_t rows, float* HWY_RESTRICT to) {
    for (std::int64_t p = 0; p < depth; ++p) {
        const float* from = g.a + (p0 + p) * g.lda + m0;
        float* column = to + p * kTileRows;
        std::int64_t i = 0;
        for (; i + kTileRows <= rows; i += kTileRows) {
            std::memcpy(column, from + i, kTileRows * sizeof(float));
            column += depth * kTileRows;
        }
        for (std::int64_t r = 0; i + r < rows; ++r) column[r] = from[i + r];
    }
}

// rows x columns of C from one block of depth.
void multiply_block(const Gemm& g, const float* a, std::int64_t row_step, std::int64_t panel_step,
                    std::int64_t depth_step, const float* b, std::int64_t depth, std::int64_t rows,
                    std::int64_t columns, const Tile& corner) {
    for (std::int64_t j = 0; j < columns; j += kTileColumns) {
        for (std::int64_t i = 0; i < rows; i += kTileRows) {
            const Tile tile = {.c = corner.c + i * g.ldc + j,
                               .ldc = g.ldc,
                               .columns = std::min(kTileColumns, columns - j),
                               .bias = corner.bias ? corner.bias + j : nullptr,
                               .accumulate = corner.accumulate};
            multiply_rows<kTileRows>(std::min(kTileRows, rows - i), depth,
                                     a + i / kTileRows * panel_step, row_step, depth_step,
                                     b + j * depth, tile);
        }
    }
}

void multiply_serially(const Gemm& g) {
    PackingSpace& space = packing_space();
    const std::int64_t blocks = std::max<std::int64_t>(1, (g.k + kDepthMax - 1) / kDepthMax);
    const std::int64_t depth_max = (g.k + blocks - 1) / blocks;
    for (std::int64_t n0 = 0; n0 < g.n; n0 += kColumnsMax) {
        const std::int64_t columns = std::min(kColumnsMax, g.n - n0);
        for (std::int64_t block = 0; block < blocks; ++block) {
            const std::int64_t p0 = block * depth_max;
            const std::int64_t depth = std::min(depth_max, g.k - p0);
            pack_b(g, p0, depth, n0, columns, space.b.data());
            for (std::int64_t m0 = 0; m0 < g.m; m0 += kRowsMax) {
                const std::int64_t rows = std::min(kRowsMax, g.m - m0);
                const Tile corner = {.c = g.c + m0 * g.ldc + n0,
                                     .ldc = g.ldc,
                                     .columns = columns,
                                     .bias = block == 0 && g.bias ? g.bias + n0 : nullptr,
                                     .accumulate = block > 0 || g.accumulate};
                if (g.transpose_a) {
                    pack_transposed_a(g, p0, depth, m0, rows, space.a.data());
                    multiply_block(g, space.a.data(), 1, depth * kTileRows, kTileRows,
                                   space.b.data(), depth, rows, columns, corner);
                } else {
                    multiply_block(g, g.a + m0 * g.lda + p0, g.lda, kTileRows * g.lda, 1,
                                   space.b.data(), depth, rows, columns, corner);
                }
            }
        }
    }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(multiply_serially);

// The least work worth a thread of its own.
constexpr double kFlopsPerPieceMin = 4e6;
// A piece is cut at multiples of every micro-kernel's tile.
constexpr std::int64_t kCutRows = 12;
constexpr std::int64_t kCutColumns = 32;

struct Cut {
    std::int64_t pieces = 1;
    std::int64_t length = 0;

    Cut(std::int64_t count, std::int64_t wanted, std::int64_t multiple) {
        const std::int64_t even = (count + wanted - 1) / wanted;
        length = (even + multiple - 1) / multiple * multiple;
        pieces = (count + length - 1) / length;
    }
};

}  // namespace

void gemm_serial(const Gemm& args) {
    if (args.m == 0 || args.n == 0) return;
    HWY_DYNAMIC_DISPATCH(multiply_serially)(args);
}

void gemm(const Gemm& args) {
    if (args.m == 0 || args.n == 0) return;
    const double flops = 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) *
                         static_cast<double>(args.k);
    // Two pieces a thread even out what other processes take away.
    const auto wanted = static_cast<std::int64_t>(
        std::min(flops / kFlopsPerPieceMin, 2.0 * static_cast<double>(thread_count())));
    std::int64_t row_pieces = 1;
    std::int64_t column_pieces = 1;
    while (thread_count() > 1 && row_pieces * column_pieces < wanted) {
        if (args.m / row_pieces >= args.n / column_pieces) {
            row_pieces *= 2;
        } else {
            column_pieces *= 2;
        }
    }
    const Cut rows(args.m, row_pieces, kCutRows);
    const Cut columns(args.n, column_pieces, kCutColumns);
    parallel_for(rows.pieces * columns.pieces, [&](std::int64_t piece, std::int64_t /*thread*/) {
        const std::int64_t m0 = piece % rows.pieces * rows.length;
        const std::int64_t n0 = piece / rows.pieces * columns.length;
        Gemm part = args;
        part.m = std::min(rows.length, args.m - m0);
        part.n = std::min(columns.length, args.n - n0);
        part.a += args.transpose_a ? m0 : m0 * args.lda;
        part.b += args.transpose_b ? n0 * args.ldb : n0;
        part.c += m0 * args.ldc + n0;
        if (part.bias) part.bias += n0;
        gemm_serial(part);
    });
}

}  // namespace gruca::kernels
#endif
