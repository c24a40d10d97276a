// kernels/cpu/exp_inl.h
//
// The exponential of the cpu kernels. Highway's own gives 0 for what is not a number, which would
// hide a broken activation behind a plausible probability; here it stays what it is. And Highway's
// is anything at all far beyond the largest float, where this is infinite. Compiled once for each
// instruction set, hence Highway's kind of guard.
#if defined(GRUCA_KERNELS_CPU_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GRUCA_KERNELS_CPU_EXP_INL_H
#undef GRUCA_KERNELS_CPU_EXP_INL_H
#else
#define GRUCA_KERNELS_CPU_EXP_INL_H
#endif

#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class D, class V>
HWY_INLINE V exponential(D d, V x) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V beyond = hn::Set(d, 100.0f);  // exp(88.8) is infinite already.
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, hn::Min(x, beyond)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#endif
