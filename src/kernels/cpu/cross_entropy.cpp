#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/exp_inl.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

// Sum of exp(logit - largest). Where the gradient is wanted, the terms are kept in it.
float exponentials(const float* logits, float* kept, std::int64_t count, float largest) {
    return sum_lanes(count, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto e = exponential(d, hn::Sub(hn::LoadU(d, logits + i), hn::Set(d, largest)));
        if (kept) hn::StoreU(e, d, kept + i);
        return e;
    });
}

void cross_entropy_row(const CrossEntropy<float>& a, std::int64_t row) {
    const float* logits = a.logits_nv + row * a.v;
    float* dlogits = a.dlogits_nv ? a.dlogits_nv + row * a.v : nullptr;
    const std::int32_t target = a.target_n[row];
    if (target == kIgnoredTarget) {
        a.loss_n[row] = 0;
        if (dlogits) std::fill(dlogits, dlogits + a.v, 0.0f);
        return;
    }
    const float logit = logits[target];  // Before dlogits, which may be the same memory.
    const float largest = largest_of(logits, a.v);
    const float sum = exponentials(logits, dlogits, a.v, largest);
    a.loss_n[row] = static_cast<float>(std::log(double{sum}) + (double{largest} - double{logit}));
    if (!dlogits) return;
    const float factor = static_cast<float>(a.dloss / double{sum});
    for_lanes(a.v, [&](auto d, std::int64_t i) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::LoadU(d, dlogits + i), hn::Set(d, factor)), d, dlogits + i);
    });
    dlogits[target] -= static_cast<float>(a.dloss);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(cross_entropy_row);

}  // namespace

void cpu::cross_entropy(const CrossEntropy<float>& args) {
    parallel_for(args.n, [&](std::int64_t row, std::int64_t /*thread*/) {
        HWY_DYNAMIC_DISPATCH(cross_entropy_row)(args, row);
    });
    for (std::int64_t row = 0; row < args.n; ++row) {
        *args.loss_sum += double{args.loss_n[row]};
        *args.target_count += args.target_n[row] == kIgnoredTarget ? 0 : 1;
    }
}

}  // namespace gruca::kernels
#endif
