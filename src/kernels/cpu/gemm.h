// kernels/cpu/gemm.h
//
// C = op(A) op(B) + bias, or C += op(A) op(B), in float: the product behind linear layers and
// attention. Each element of C is summed in an order that only k decides: in blocks, each in one
// chain of fused multiply-adds. How rows and columns are shared among threads changes no bit.
#pragma once

#include <cstdint>

namespace gruca::kernels {

// All matrices are row-major; ld is the distance of rows in memory.
struct Gemm {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    const float* a;  // [m, k], or [k, m] if transposed.
    std::int64_t lda;
    bool transpose_a;
    const float* b;  // [k, n], or [n, k] if transposed.
    std::int64_t ldb;
    bool transpose_b;
    float* c;  // [m, n]
    std::int64_t ldc;
    const float* bias = nullptr;  // [n], only without accumulate.
    bool accumulate;
};

// On the calling thread. Keeps a packing space of fixed size per thread, made at its first product.
void gemm_serial(const Gemm& args);

// On all threads.
void gemm(const Gemm& args);

}  // namespace gruca::kernels
