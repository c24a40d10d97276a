#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/exp_inl.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

// 1 / (1 + exp(-x)): right down to where the result underflows.
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
    const V one = hn::Set(d, 1.0f);
    return hn::Div(one, hn::Add(one, exponential(d, hn::Neg(x))));
}

// 0.5 (1 + tanh(u)) is sigmoid(2u), which needs one exponential and loses no digit at small values.
constexpr float kGeluLinear = 1.5957691216057308f;  // 2 sqrt(2/pi)
constexpr float kGeluCubic = 0.044715f;

template <class D, class V>
HWY_INLINE V gelu_gate(D d, V x) {
    const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, kGeluCubic), hn::Set(d, 1.0f));
    return sigmoid(d, hn::Mul(hn::Mul(x, hn::Set(d, kGeluLinear)), cubic));
}

void gelu_forward(const GeluForward<float>& a, std::int64_t begin, std::int64_t end) {
    for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto x = hn::LoadU(d, a.x + begin + i);
        hn::StoreU(hn::Mul(x, gelu_gate(d, x)), d, a.y + begin + i);
    });
}

void gelu_backward(const GeluBackward<float>& a, std::int64_t begin, std::int64_t end) {
    for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto x = hn::LoadU(d, a.x + begin + i);
        const auto gate = gelu_gate(d, x);
        const auto slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 3.0f * kGeluCubic * kGeluLinear),
                                      hn::Set(d, kGeluLinear));
        // gate + x gate (1 - gate) slope, in an order in which no large number meets another.
        const auto bend = hn::Mul(hn::Mul(x, hn::NegMulAdd(gate, gate, gate)), slope);
        const auto dy = hn::LoadU(d, a.dy + begin + i);
        hn::StoreU(hn::Mul(dy, hn::Add(gate, bend)), d, a.dx + begin + i);
    });
}

void swiglu_forward(const SwigluForward<float>& a, std::int64_t begin, std::int64_t end) {
    for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto gate = hn::LoadU(d, a.gate + begin + i);
        const auto silu = hn::Mul(gate, sigmoid(d, gate));
        hn::StoreU(hn::Mul(silu, hn::LoadU(d, a.up + begin + i)), d, a.y + begin + i);
    });
}

void swiglu_backward(const SwigluBackward<float>& a, std::int64_t begin, std::int64_t end) {
    for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto gate = hn::LoadU(d, a.gate + begin + i);
        const auto up = hn::LoadU(d, a.up + begin + i);
        const auto dy = hn::LoadU(d, a.dy + begin + i);
        const auto sigma = sigmoid(d, gate);
        // sigma (1 + gate (1 - sigma))
        const auto derivative = hn::MulAdd(gate, hn::NegMulAdd(sigma, sigma, sigma), sigma);
        hn::StoreU(hn::Mul(hn::Mul(dy, up), derivative), d, a.dgate + begin + i);
        hn::StoreU(hn::Mul(dy, hn::Mul(gate, sigma)), d, a.dup + begin + i);
    });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(gelu_forward);
HWY_EXPORT(gelu_backward);
HWY_EXPORT(swiglu_forward);
HWY_EXPORT(swiglu_backward);

constexpr std::int64_t kPieceLength = 16384;

}  // namespace

void cpu::gelu(const GeluForward<float>& args) {
    parallel_ranges(args.count, kPieceLength, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(gelu_forward)(args, begin, end);
    });
}

void cpu::gelu(const GeluBackward<float>& args) {
    parallel_ranges(args.count, kPieceLength, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(gelu_backward)(args, begin, end);
    });
}

void cpu::swiglu(const SwigluForward<float>& args) {
    parallel_ranges(args.count, kPieceLength, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(swiglu_forward)(args, begin, end);
    });
}

void cpu::swiglu(const SwigluBackward<float>& args) {
    parallel_ranges(args.count, kPieceLength, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(swiglu_backward)(args, begin, end);
    });
}

}  // namespace gruca::kernels
#endif
