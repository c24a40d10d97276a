// Layers on many rows are a blocked product. On the few rows of generation each weight is used once
// or twice, so that packing it would cost more than the product: there every output is a dot
// product.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

// Outputs [begin, end) of all rows, so that each weight is read from memory once.
void dot_outputs(const LinearForward<float>& a, std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
        const float* weight = a.weight_oi + o * a.i;
        for (std::int64_t n = 0; n < a.n; ++n) {
            const float* x = a.x_ni + n * a.i;
            const float dot = sum_lanes(a.i, [&](auto d, std::int64_t i) HWY_ATTR {
                return hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, weight + i));
            });
            a.y_no[n * a.o + o] = a.bias_o ? dot + a.bias_o[o] : dot;
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

HWY_EXPORT(dot_outputs);

constexpr std::int64_t kRowsOfDotsMax = 4;
constexpr std::int64_t kWeightsPerPiece = std::int64_t{1} << 18;

}  // namespace

void cpu::linear(const LinearForward<float>& a) {
    if (a.n <= kRowsOfDotsMax) {
        parallel_ranges(a.o, std::max<std::int64_t>(1, kWeightsPerPiece / a.i),
                        [&](std::int64_t begin, std::int64_t end) {
                            HWY_DYNAMIC_DISPATCH(dot_outputs)(a, begin, end);
                        });
        return;
    }
    gemm({.m = a.n,
          .n = a.o,
          .k = a.i,
          .a = a.x_ni,
          .lda = a.i,
          .transpose_a = false,
          .b = a.weight_oi,
          .ldb = a.i,
          .transpose_b = true,
          .c = a.y_no,
          .ldc = a.o,
          .bias = a.bias_o,
          .accumulate = false});
}

void cpu::linear(const LinearBackward<float>& a) {
    if (a.dx_ni) {
        gemm({.m = a.n,
              .n = a.i,
              .k = a.o,
              .a = a.dy_no,
              .lda = a.o,
              .transpose_a = false,
              .b = a.weight_oi,
              .ldb = a.i,
              .transpose_b = false,
              .c = a.dx_ni,
              .ldc = a.i,
              .accumulate = a.accumulate_dx});
    }
    if (a.dweight_oi) {
        gemm({.m = a.o,
              .n = a.i,
              .k = a.n,
              .a = a.dy_no,
              .lda = a.o,
              .transpose_a = true,
              .b = a.x_ni,
              .ldb = a.i,
              .transpose_b = false,
              .c = a.dweight_oi,
              .ldc = a.i,
              .accumulate = true});
    }
    if (a.dbias_o) {
        add_column_sums({.dbias_c = a.dbias_o, .dy_nc = a.dy_no, .n = a.n, .c = a.o});
    }
}

}  // namespace gruca::kernels
#endif
