#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

// The scalars of the step, worked out once in double.
struct AdamwFactors {
    float gradient_scale;
    float beta1;
    float beta2;
    float rest1;  // 1 - beta1
    float rest2;
    float rate;   // learning_rate / (1 - beta1^step)
    float root2;  // 1 / sqrt(1 - beta2^step)
    float epsilon;
    float decay;  // learning_rate * weight_decay
};

AdamwFactors factors_of(const AdamwStep<float>& a) {
    const double step = static_cast<double>(a.step);
    return {.gradient_scale = static_cast<float>(a.gradient_scale),
            .beta1 = static_cast<float>(a.beta1),
            .beta2 = static_cast<float>(a.beta2),
            .rest1 = static_cast<float>(1.0 - a.beta1),
            .rest2 = static_cast<float>(1.0 - a.beta2),
            .rate = static_cast<float>(a.learning_rate / (1.0 - std::pow(a.beta1, step))),
            .root2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(a.beta2, step))),
            .epsilon = static_cast<float>(a.epsilon),
            .decay = static_cast<float>(a.learning_rate * a.weight_decay)};
}

void adamw_range(const AdamwStep<float>& a, std::int64_t begin, std::int64_t end) {
    const AdamwFactors f = factors_of(a);
    for_lanes(end - begin, [&](auto d, std::int64_t offset) HWY_ATTR {
        const std::int64_t i = begin + offset;
        const auto g = hn::Mul(hn::LoadU(d, a.gradient + i), hn::Set(d, f.gradient_scale));
        const auto m = hn::MulAdd(hn::LoadU(d, a.first_moment + i), hn::Set(d, f.beta1),
                                  hn::Mul(g, hn::Set(d, f.rest1)));
        const auto s = hn::MulAdd(hn::LoadU(d, a.second_moment + i), hn::Set(d, f.beta2),
                                  hn::Mul(hn::Mul(g, g), hn::Set(d, f.rest2)));
        const auto w = hn::LoadU(d, a.weight + i);
        const auto root = hn::MulAdd(hn::Sqrt(s), hn::Set(d, f.root2), hn::Set(d, f.epsilon));
        const auto kept = hn::NegMulAdd(w, hn::Set(d, f.decay), w);
        const auto step = hn::Div(hn::Mul(m, hn::Set(d, f.rate)), root);
        hn::StoreU(m, d, a.first_moment + i);
        hn::StoreU(s, d, a.second_moment + i);
        hn::StoreU(hn::Sub(kept, step), d, a.weight + i);
    });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(adamw_range);

constexpr std::int64_t kPieceLength = 65536;

}  // namespace

void cpu::adamw(const AdamwStep<float>& args) {
    parallel_ranges(args.count, kPieceLength, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(adamw_range)(args, begin, end);
    });
}

}  // namespace gruca::kernels
#endif
