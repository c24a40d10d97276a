// kernels/ops_cases.h
//
// Every differentiable operation as a table row for the tests: what goes in, how to run it forward
// and backward. The buffers make broken promises visible: activation gradients start as NaN, and
// whatever is to be added to starts at kStart, which is taken off again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/ops.h"

namespace gruca::kernels::testing {

template <class Real>
using Values = std::vector<Real>;
template <class Real>
using Many = std::vector<Values<Real>>;

inline constexpr double kStart = 0.25;

template <class Real>
Values<Real> unwritten(std::int64_t count) {
    return Values<Real>(static_cast<std::size_t>(count), std::numeric_limits<Real>::quiet_NaN());
}

template <class Real>
Values<Real> started(std::int64_t count) {
    return Values<Real>(static_cast<std::size_t>(count), static_cast<Real>(kStart));
}

template <class Real>
Values<Real> without_start(Values<Real> values) {
    for (Real& value : values) value -= static_cast<Real>(kStart);
    return values;
}

// The same numbers in float and double, up to rounding to float.
template <class Real>
Values<Real> random_values(std::int64_t count, std::uint64_t stream) {
    const Philox philox(17, stream);
    Values<Real> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<Real>(static_cast<float>(philox.normal(i)));
    }
    return values;
}

inline std::vector<std::int32_t> random_indices(std::int64_t count, std::int64_t below) {
    const Philox philox(18, 0);
    std::vector<std::int32_t> indices(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < indices.size(); ++i) {
        indices[i] = static_cast<std::int32_t>(philox.below(static_cast<std::uint64_t>(below), i));
    }
    return indices;
}

template <class Real>
struct Case {
    std::string name;
    std::vector<std::int64_t> input_counts;
    // The first output is the one with a gradient; the others are kept for the backward pass.
    std::function<Many<Real>(Ops<Real>&, const Many<Real>& inputs)> forward;
    // From inputs, outputs and the gradient of the first output, the gradient of each input.
    std::function<Many<Real>(Ops<Real>&, const Many<Real>& inputs, const Many<Real>& outputs,
                             const Values<Real>& dy)>
        backward;
    double flops = 0;      // Of both directions, where it is worth counting.
    bool same_dy = false;  // The operation takes one gradient for all rows.
};

template <class Real>
Case<Real> embedding_case(std::int64_t b, std::int64_t t, std::int64_t c, std::int64_t v) {
    const auto token_n = random_indices(b * t, v);
    return {.name = "embedding_" + std::to_string(b) + "x" + std::to_string(t) + "_c" +
                    std::to_string(c),
            .input_counts = {v * c, t * c},
            .forward =
                [=](Ops<Real>& ops, const Many<Real>& in) {
                    auto y = unwritten<Real>(b * t * c);
                    ops.embedding(EmbeddingForward<Real>{.y_nc = y.data(),
                                                         .token_n = token_n.data(),
                                                         .token_weight_vc = in[0].data(),
                                                         .position_weight_tc = in[1].data(),
                                                         .b = b,
                                                         .t = t,
                                                         .c = c,
                                                         .v = v});
                    return Many<Real>{y};
                },
            .backward =
                [=](Ops<Real>& ops, const Many<Real>& /*in*/, const Many<Real>& /*out*/,
                    const Values<Real>& dy) {
                    auto dtoken = started<Real>(v * c);
                    auto dposition = started<Real>(t * c);
                    ops.embedding(EmbeddingBackward<Real>{.dtoken_weight_vc = dtoken.data(),
                                                          .dposition_weight_tc = dposition.data(),
                                                          .dy_nc = dy.data(),
                                                          .token_n = token_n.data(),
                                                          .b = b,
                                                          .t = t,
                                                          .c = c,
                                                          .v = v});
                    return Many<Real>{without_start(dtoken), without_start(dposition)};
                }};
}

template <class Real>
Case<Real> layer_norm_case(std::int64_t n, std::int64_t c, bool accumulate) {
    return {
        .name = "layer_norm_n" + std::to_string(n) + "_c" + std::to_string(c),
        .input_counts = {n * c, c, c},
        .forward =
            [=](Ops<Real>& ops, const Many<Real>& in) {
                Many<Real> out = {unwritten<Real>(n * c), unwritten<Real>(n), unwritten<Real>(n)};
                ops.layer_norm(LayerNormForward<Real>{.y_nc = out[0].data(),
                                                      .mean_n = out[1].data(),
                                                      .rstd_n = out[2].data(),
                                                      .x_nc = in[0].data(),
                                                      .weight_c = in[1].data(),
                                                      .bias_c = in[2].data(),
                                                      .n = n,
                                                      .c = c,
                                                      .epsilon = 1e-5});
                return out;
            },
        .backward =
            [=](Ops<Real>& ops, const Many<Real>& in, const Many<Real>& out,
                const Values<Real>& dy) {
                auto dx = accumulate ? started<Real>(n * c) : unwritten<Real>(n * c);
                auto dweight = started<Real>(c);
                auto dbias = started<Real>(c);
                ops.layer_norm(LayerNormBackward<Real>{.dx_nc = dx.data(),
                                                       .dweight_c = dweight.data(),
                                                       .dbias_c = dbias.data(),
                                                       .dy_nc = dy.data(),
                                                       .x_nc = in[0].data(),
                                                       .weight_c = in[1].data(),
                                                       .mean_n = out[1].data(),
                                                       .rstd_n = out[2].data(),
                                                       .n = n,
                                                       .c = c,
                                                       .accumulate_dx = accumulate});
                return Many<Real>{accumulate ? without_start(dx) : dx, without_start(dweight),
                                  without_start(dbias)};
            }};
}

template <class Real>
Case<Real> rms_norm_case(std::int64_t n, std::int64_t c, bool accumulate) {
    return {.name = "rms_norm_n" + std::to_string(n) + "_c" + std::to_string(c),
            .input_counts = {n * c, c},
            .forward =
                [=](Ops<Real>& ops, const Many<Real>& in) {
                    Many<Real> out = {unwritten<Real>(n * c), unwritten<Real>(n)};
                    ops.rms_norm(RmsNormForward<Real>{.y_nc = out[0].data(),
                                                      .rstd_n = out[1].data(),
                                                      .x_nc = in[0].data(),
                                                      .weight_c = in[1].data(),
                                                      .n = n,
                                                      .c = c,
                                                      .epsilon = 1e-5});
                    return out;
                },
            .backward =
                [=](Ops<Real>& ops, const Many<Real>& in, const Many<Real>& out,
                    const Values<Real>& dy) {
                    auto dx = accumulate ? started<Real>(n * c) : unwritten<Real>(n * c);
                    auto dweight = started<Real>(c);
                    ops.rms_norm(RmsNormBackward<Real>{.dx_nc = dx.data(),
                                                       .dweight_c = dweight.data(),
                                                       .dy_nc = dy.data(),
                                                       .x_nc = in[0].data(),
                                                       .weight_c = in[1].data(),
                                                       .rstd_n = out[1].data(),
                                                       .n = n,
                                                       .c = c,
                                                       .accumulate_dx = accumulate});
                    return Many<Real>{accumulate ? without_start(dx) : dx, without_start(dweight)};
                }};
}

template <class Real>
Case<Real> linear_case(std::int64_t n, std::int64_t i, std::int64_t o, bool bias, bool accumulate) {
    return {.name = "linear_n" + std::to_string(n) + "_i" + std::to_string(i) + "_o" +
                    std::to_string(o) + (bias ? "_bias" : ""),
            .input_counts = {n * i, o * i, bias ? o : 0},
            .forward =
                [=](Ops<Real>& ops, const Many<Real>& in) {
                    auto y = unwritten<Real>(n * o);
                    ops.linear(LinearForward<Real>{.y_no = y.data(),
                                                   .x_ni = in[0].data(),
                                                   .weight_oi = in[1].data(),
                                                   .bias_o = bias ? in[2].data() : nullptr,
                                                   .n = n,
                                                   .i = i,
                                                   .o = o});
                    return Many<Real>{y};
                },
            .backward =
                [=](Ops<Real>& ops, const Many<Real>& in, const Many<Real>& /*out*/,
                    const Values<Real>& dy) {
                    auto dx = accumulate ? started<Real>(n * i) : unwritten<Real>(n * i);
                    auto dweight = started<Real>(o * i);
                    auto dbias = started<Real>(bias ? o : 0);
                    ops.linear(LinearBackward<Real>{.dx_ni = dx.data(),
                                                    .dweight_oi = dweight.data(),
                                                    .dbias_o = bias ? dbias.data() : nullptr,
                                                    .dy_no = dy.data(),
                                                    .x_ni = in[0].data(),
                                                    .weight_oi = in[1].data(),
                                                    .n = n,
                                                    .i = i,
                                                    .o = o,
                                                    .accumulate_dx = accumulate});
                    return Many<Real>{accumulate ? without_start(dx) : dx, without_start(dweight),
                                      without_start(dbias)};
                },
            .flops = 6.0 * static_cast<double>(n * i * o)};
}

template <class Real>
Case<Real> rope_case(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t d) {
    const std::int64_t stride = h * d + 3;  // Other things lie between the rows.
    Values<Real> cos_tk(static_cast<std::size_t>(t * d / 2));
    Values<Real> sin_tk(cos_tk.size());
    for (std::size_t i = 0; i < cos_tk.size(); ++i) {
        cos_tk[i] = static_cast<Real>(std::cos(0.3 * static_cast<double>(i)));
        sin_tk[i] = static_cast<Real>(std::sin(0.3 * static_cast<double>(i)));
    }
    const auto turn = [=](Ops<Real>& ops, Values<Real> x, bool inverse) {
        ops.rope(Rope<Real>{.x_nhd = x.data(),
                            .stride = stride,
                            .cos_tk = cos_tk.data(),
                            .sin_tk = sin_tk.data(),
                            .b = b,
                            .t = t,
                            .h = h,
                            .d = d,
                            .inverse = inverse});
        return x;
    };
    return {
        .name = "rope_t" + std::to_string(t) + "_h" + std::to_string(h) + "_d" + std::to_string(d),
        .input_counts = {b * t * stride},
        .forward = [=](Ops<Real>& ops,
                       const Many<Real>& in) { return Many<Real>{turn(ops, in[0], false)}; },
        .backward = [=](Ops<Real>& ops, const Many<Real>& /*in*/, const Many<Real>& /*out*/,
                        const Values<Real>& dy) { return Many<Real>{turn(ops, dy, true)}; }};
}

struct AttentionShape {
    std::int64_t b;
    std::int64_t t;
    std::int64_t h;
    std::int64_t g;
    std::int64_t d;
    std::int64_t window = 0;    // 0: none.
    std::int64_t document = 0;  // A new one begins so often. 0: never.

    std::int64_t stride() const { return (h + 2 * g) * d; }

    // Empty where all see from the beginning.
    std::vector<std::int32_t> first_keys() const {
        std::vector<std::int32_t> first;
        for (std::int64_t row = 0; (window > 0 || document > 0) && row < b * t; ++row) {
            const std::int64_t at = row % t;
            const std::int64_t by_window =
                window > 0 ? std::max<std::int64_t>(at + 1 - window, 0) : 0;
            const std::int64_t by_document = document > 0 ? at / document * document : 0;
            first.push_back(static_cast<std::int32_t>(std::max(by_window, by_document)));
        }
        return first;
    }
};

inline const std::int32_t* pointer_to(const std::vector<std::int32_t>& first) {
    return first.empty() ? nullptr : first.data();
}

// Queries, keys and values side by side in one buffer, and their gradients likewise.
template <class Real>
Many<Real> attention_forward(Ops<Real>& ops, const AttentionShape& s, const Values<Real>& qkv) {
    Many<Real> out = {unwritten<Real>(s.b * s.t * s.h * s.d), unwritten<Real>(s.b * s.h * s.t)};
    auto scratch = unwritten<Real>(ops.attention_scratch_count(s.t, s.h, s.g, s.d));
    const auto first = s.first_keys();
    ops.attention(AttentionForward<Real>{.out_nhd = out[0].data(),
                                         .lse_bht = out[1].data(),
                                         .q_nhd = qkv.data(),
                                         .k_ngd = qkv.data() + s.h * s.d,
                                         .v_ngd = qkv.data() + (s.h + s.g) * s.d,
                                         .first_key_bt = pointer_to(first),
                                         .q_stride = s.stride(),
                                         .k_stride = s.stride(),
                                         .v_stride = s.stride(),
                                         .b = s.b,
                                         .t = s.t,
                                         .h = s.h,
                                         .g = s.g,
                                         .d = s.d,
                                         .scale = 1.0 / std::sqrt(static_cast<double>(s.d)),
                                         .scratch = scratch});
    return out;
}

template <class Real>
Values<Real> attention_backward(Ops<Real>& ops, const AttentionShape& s, const Values<Real>& qkv,
                                const Many<Real>& out, const Values<Real>& dout) {
    auto dqkv = unwritten<Real>(s.b * s.t * s.stride());
    auto scratch = unwritten<Real>(ops.attention_scratch_count(s.t, s.h, s.g, s.d));
    const auto first = s.first_keys();
    ops.attention(AttentionBackward<Real>{.dq_nhd = dqkv.data(),
                                          .dk_ngd = dqkv.data() + s.h * s.d,
                                          .dv_ngd = dqkv.data() + (s.h + s.g) * s.d,
                                          .dout_nhd = dout.data(),
                                          .out_nhd = out[0].data(),
                                          .lse_bht = out[1].data(),
                                          .q_nhd = qkv.data(),
                                          .k_ngd = qkv.data() + s.h * s.d,
                                          .v_ngd = qkv.data() + (s.h + s.g) * s.d,
                                          .first_key_bt = pointer_to(first),
                                          .q_stride = s.stride(),
                                          .k_stride = s.stride(),
                                          .v_stride = s.stride(),
                                          .b = s.b,
                                          .t = s.t,
                                          .h = s.h,
                                          .g = s.g,
                                          .d = s.d,
                                          .scale = 1.0 / std::sqrt(static_cast<double>(s.d)),
                                          .scratch = scratch});
    return dqkv;
}

template <class Real>
Case<Real> attention_case(AttentionShape s) {
    return {.name = "attention_b" + std::to_string(s.b) + "_t" + std::to_string(s.t) + "_h" +
                    std::to_string(s.h) + "_g" + std::to_string(s.g) + "_d" + std::to_string(s.d) +
                    "_w" + std::to_string(s.window) + "_doc" + std::to_string(s.document),
            .input_counts = {s.b * s.t * s.stride()},
            .forward = [=](Ops<Real>& ops,
                           const Many<Real>& in) { return attention_forward(ops, s, in[0]); },
            .backward =
                [=](Ops<Real>& ops, const Many<Real>& in, const Many<Real>& out,
                    const Values<Real>& dy) {
                    return Many<Real>{attention_backward(ops, s, in[0], out, dy)};
                },
            // Seven products (two forward, five backward), half of each beyond the diagonal.
            .flops = 7.0 * static_cast<double>(s.b * s.h * s.t * s.t * s.d)};
}

template <class Real>
Case<Real> gelu_case(std::int64_t count) {
    return {.name = "gelu_" + std::to_string(count),
            .input_counts = {count},
            .forward =
                [=](Ops<Real>& ops, const Many<Real>& in) {
                    auto y = unwritten<Real>(count);
                    ops.gelu(GeluForward<Real>{.y = y.data(), .x = in[0].data(), .count = count});
                    return Many<Real>{y};
                },
            .backward =
                [=](Ops<Real>& ops, const Many<Real>& in, const Many<Real>& /*out*/,
                    const Values<Real>& dy) {
                    auto dx = unwritten<Real>(count);
                    ops.gelu(GeluBackward<Real>{
                        .dx = dx.data(), .dy = dy.data(), .x = in[0].data(), .count = count});
                    return Many<Real>{dx};
                }};
}

template <class Real>
Case<Real> swiglu_case(std::int64_t count) {
    return {.name = "swiglu_" + std::to_string(count),
            .input_counts = {count, count},
            .forward =
                [=](Ops<Real>& ops, const Many<Real>& in) {
                    auto y = unwritten<Real>(count);
                    ops.swiglu(SwigluForward<Real>{
                        .y = y.data(), .gate = in[0].data(), .up = in[1].data(), .count = count});
                    return Many<Real>{y};
                },
            .backward =
                [=](Ops<Real>& ops, const Many<Real>& in, const Many<Real>& /*out*/,
                    const Values<Real>& dy) {
                    auto dgate = unwritten<Real>(count);
                    auto dup = unwritten<Real>(count);
                    ops.swiglu(SwigluBackward<Real>{.dgate = dgate.data(),
                                                    .dup = dup.data(),
                                                    .dy = dy.data(),
                                                    .gate = in[0].data(),
                                                    .up = in[1].data(),
                                                    .count = count});
                    return Many<Real>{dgate, dup};
                }};
}

// Every third target is ignored. Losses are the output, so dy is the same for all rows.
template <class Real>
Case<Real> cross_entropy_case(std::int64_t n, std::int64_t v) {
    auto target_n = random_indices(n, v);
    for (std::size_t i = 1; i < target_n.size(); i += 3) target_n[i] = kIgnoredTarget;
    const auto run = [=](Ops<Real>& ops, const Values<Real>& logits, Real* dlogits, double dloss) {
        auto loss = unwritten<Real>(n);
        double loss_sum = 0;
        std::int64_t target_count = 0;
        ops.cross_entropy(CrossEntropy<Real>{.loss_n = loss.data(),
                                             .dlogits_nv = dlogits,
                                             .loss_sum = &loss_sum,
                                             .target_count = &target_count,
                                             .logits_nv = logits.data(),
                                             .target_n = target_n.data(),
                                             .n = n,
                                             .v = v,
                                             .dloss = dloss});
        return Many<Real>{loss, {static_cast<Real>(loss_sum), static_cast<Real>(target_count)}};
    };
    return {.name = "cross_entropy_n" + std::to_string(n) + "_v" + std::to_string(v),
            .input_counts = {n * v},
            .forward = [=](Ops<Real>& ops,
                           const Many<Real>& in) { return run(ops, in[0], nullptr, 0); },
            .backward =
                [=](Ops<Real>& ops, const Many<Real>& in, const Many<Real>& /*out*/,
                    const Values<Real>& dy) {
                    Values<Real> logits = in[0];  // In place, as a caller short of memory does it.
                    run(ops, logits, logits.data(), double{dy.at(0)});
                    return Many<Real>{logits};
                },
            .same_dy = true};
}

}  // namespace gruca::kernels::testing
