// kernels/cpu/lanes_inl.h
//
// Walking a row with SIMD. Compiled once for each instruction set, hence Highway's kind of guard. A
// body is a lambda of (tag, index); the last elements get it with a tag of one lane, so no kernel
// has a second loop for odd sizes, and none reads or writes past the end.
#if defined(GRUCA_KERNELS_CPU_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GRUCA_KERNELS_CPU_LANES_INL_H
#undef GRUCA_KERNELS_CPU_LANES_INL_H
#else
#define GRUCA_KERNELS_CPU_LANES_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(tag, i) for all lanes of [0, count).
template <class Body>
HWY_INLINE void for_lanes(std::int64_t count, const Body& body) {
    const hn::ScalableTag<float> d;
    const hn::CappedTag<float, 1> one;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) body(d, i);
    for (; i < count; ++i) body(one, i);
}

// The sum of term(tag, i) over [0, count): two chains of additions a lane, then across lanes.
template <class Term>
HWY_INLINE float sum_lanes(std::int64_t count, const Term& term) {
    const hn::ScalableTag<float> d;
    const hn::CappedTag<float, 1> one;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto even = hn::Zero(d);
    auto odd = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        even = hn::Add(even, term(d, i));
        odd = hn::Add(odd, term(d, i + lanes));
    }
    for (; i + lanes <= count; i += lanes) even = hn::Add(even, term(d, i));
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    for (; i < count; ++i) sum += hn::GetLane(term(one, i));
    return sum;
}

// The largest of x; count is at least 1.
HWY_INLINE float largest_of(const float* x, std::int64_t count) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto largest = hn::Set(d, x[0]);
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) largest = hn::Max(largest, hn::LoadU(d, x + i));
    float result = hn::GetLane(hn::MaxOfLanes(d, largest));
    for (; i < count; ++i) result = x[i] > result ? x[i] : result;
    return result;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#endif
