// kernels/cpu/simd.h
//
// The instruction sets the cpu kernels are compiled for: AVX-512, AVX2, and plain C++ for whatever
// is older. To be included before any header of Highway, which compiles each kernel once for each
// of them and chooses at run time. More of them would cost build time and serve no machine in use.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
