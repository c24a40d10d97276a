#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

void rope_row(const Rope<float>& a, std::int64_t row) {
    const std::int64_t half = a.d / 2;
    const float* cosines = a.cos_tk + row % a.t * half;
    const float* sines = a.sin_tk + row % a.t * half;
    for (std::int64_t h = 0; h < a.h; ++h) {
        float* x = a.x_nhd + row * a.stride + h * a.d;
        for_lanes(half, [&](auto d, std::int64_t k) HWY_ATTR {
            const auto first = hn::LoadU(d, x + k);
            const auto second = hn::LoadU(d, x + half + k);
            const auto cosine = hn::LoadU(d, cosines + k);
            const auto turn = hn::LoadU(d, sines + k);
            const auto sine = a.inverse ? hn::Neg(turn) : turn;
            hn::StoreU(hn::NegMulAdd(second, sine, hn::Mul(first, cosine)), d, x + k);
            hn::StoreU(hn::MulAdd(first, sine, hn::Mul(second, cosine)), d, x + half + k);
        });
    }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(rope_row);

constexpr std::int64_t kRowsPerPiece = 32;

}  // namespace

void cpu::rope(const Rope<float>& args) {
    parallel_ranges(args.b * args.t, kRowsPerPiece, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) HWY_DYNAMIC_DISPATCH(rope_row)(args, row);
    });
}

}  // namespace gruca::kernels
#endif
