#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels.h"

namespace gruca::kernels {

void cpu::linear(const LinearForward<float>& a) {
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
