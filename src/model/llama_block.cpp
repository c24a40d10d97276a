#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/block.h"

namespace gruca::model {
namespace {

template <class Real>
class LlamaBlock final : public Block<Real> {
  public:
    LlamaBlock(const BlockParts<Real>& parts, std::int64_t layer)
        : LlamaBlock(parts, layer, fmt::format("model.layers.{}.", layer)) {}

    LlamaBlock(const BlockParts<Real>& parts, std::int64_t layer, const std::string& at)
        : config_(parts.config),
          windowed_(config_.window_of(layer) > 0),
          ops_(parts.ops),
          scratch_(parts.scratch),
          norm1_(parts.bindings, at + "input_layernorm", config_.norm_epsilon, parts.largest.n()),
          query_(parts.bindings, at + "self_attn.q_proj"),
          key_(parts.bindings, at + "self_attn.k_proj"),
          value_(parts.bindings, at + "self_attn.v_proj"),
          project_(parts.bindings, at + "self_attn.o_proj"),
          norm2_(parts.bindings, at + "post_attention_layernorm", config_.norm_epsilon,
                 parts.largest.n()),
          gate_(parts.bindings, at + "mlp.gate_proj"),
          up_(parts.bindings, at + "mlp.up_proj"),
          down_(parts.bindings, at + "mlp.down_proj"),
          normed1_nc_(parts.largest.n() * config_.width),
          q_nhd_(parts.largest.n() * config_.query_width()),
          k_ngd_(parts.largest.n() * config_.kv_width()),
          v_ngd_(parts.largest.n() * config_.kv_width()),
          lse_bht_(parts.largest.n() * config_.heads),
          attended_nhd_(parts.largest.n() * config_.query_width()),
          middle_nc_(parts.largest.n() * config_.width),
          normed2_nc_(parts.largest.n() * config_.width),
          gate_nf_(parts.largest.n() * config_.hidden),
          up_nf_(parts.largest.n() * config_.hidden),
          active_nf_(parts.largest.n() * config_.hidden) {
        if (!config_.head_norm) return;
        query_norm_.emplace(parts, at + "self_attn.q_norm", config_.heads);
        key_norm_.emplace(parts, at + "self_attn.k_norm", config_.kv_heads);
    }

    void forward(Real* y_nc, const Real* x_nc, BatchShape shape) override {
        const std::int64_t n = shape.n(), count = n * config_.width;
        norm1_.forward(ops_, {.y_nc = normed1_nc_.data(), .x_nc = x_nc, .n = n});
        query_.forward(ops_, {.y_no = q_nhd_.data(), .x_ni = normed1_nc_.data(), .n = n});
        key_.forward(ops_, {.y_no = k_ngd_.data(), .x_ni = normed1_nc_.data(), .n = n});
        value_.forward(ops_, {.y_no = v_ngd_.data(), .x_ni = normed1_nc_.data(), .n = n});
        if (query_norm_) query_norm_->forward(ops_, q_nhd_.data(), n);
        if (key_norm_) key_norm_->forward(ops_, k_ngd_.data(), n);
        turn(q_nhd_.data(), config_.heads, shape, false);
        turn(k_ngd_.data(), config_.kv_heads, shape, false);
        attend(shape);
        project_.forward(ops_, {.y_no = middle_nc_.data(), .x_ni = attended_nhd_.data(), .n = n});
        ops_.add({.y = middle_nc_.data(), .a = middle_nc_.data(), .b = x_nc, .count = count});

        norm2_.forward(ops_, {.y_nc = normed2_nc_.data(), .x_nc = middle_nc_.data(), .n = n});
        gate_.forward(ops_, {.y_no = gate_nf_.data(), .x_ni = normed2_nc_.data(), .n = n});
        up_.forward(ops_, {.y_no = up_nf_.data(), .x_ni = normed2_nc_.data(), .n = n});
        ops_.swiglu(kernels::SwigluForward<Real>{.y = active_nf_.data(),
                                                 .gate = gate_nf_.data(),
                                                 .up = up_nf_.data(),
                                                 .count = n * config_.hidden});
        down_.forward(ops_, {.y_no = y_nc, .x_ni = active_nf_.data(), .n = n});
        ops_.add({.y = y_nc, .a = y_nc, .b = middle_nc_.data(), .count = count});
    }

    void backward(Real* d_nc, const Real* x_nc, BatchShape shape) override {
        const std::int64_t n = shape.n();
        Real* const narrow = scratch_.narrow_nc.data();
        Real* const wide = scratch_.wide.data();
        down_.backward(ops_, {.dx_ni = wide, .dy_no = d_nc, .x_ni = active_nf_.data(), .n = n});
        ops_.swiglu(kernels::SwigluBackward<Real>{.dgate = gate_nf_.data(),
                                                  .dup = up_nf_.data(),
                                                  .dy = wide,
                                                  .gate = gate_nf_.data(),
                                                  .up = up_nf_.data(),
                                                  .count = n * config_.hidden});
        backward_shared(narrow, n, normed2_nc_.data(),
                        {{&gate_, gate_nf_.data()}, {&up_, up_nf_.data()}});
        norm2_.backward(ops_, {.dx_nc = d_nc,
                               .dy_nc = narrow,
                               .x_nc = middle_nc_.data(),
                               .n = n,
                               .accumulate_dx = true});

        project_.backward(ops_,
                          {.dx_ni = narrow, .dy_no = d_nc, .x_ni = attended_nhd_.data(), .n = n});
        Real* const dq = wide;
        Real* const dk = dq + n * config_.query_width();
        Real* const dv = dk + n * config_.kv_width();
        attend_backward(dq, dk, dv, narrow, shape);
        turn(dq, config_.heads, shape, true);
        turn(dk, config_.kv_heads, shape, true);
        if (query_norm_) query_norm_->backward(ops_, dq, n);
        if (key_norm_) key_norm_->backward(ops_, dk, n);
        backward_shared(narrow, n, normed1_nc_.data(), {{&query_, dq}, {&key_, dk}, {&value_, dv}});
        norm1_.backward(
            ops_, {.dx_nc = d_nc, .dy_nc = narrow, .x_nc = x_nc, .n = n, .accumulate_dx = true});
    }

  private:
    // An RMSNorm over each head of a row, in place; keeps what went in.
    class HeadNorm {
      public:
        HeadNorm(const BlockParts<Real>& parts, const std::string& name, std::int64_t heads)
            : heads_(heads),
              norm_(parts.bindings, name, parts.config.norm_epsilon, parts.largest.n() * heads),
              before_nhd_(parts.largest.n() * heads * parts.config.head_size()),
              size_(parts.config.head_size()) {}

        void forward(kernels::Ops<Real>& ops, Real* x_nhd, std::int64_t n) {
            std::copy_n(x_nhd, n * heads_ * size_, before_nhd_.data());
            norm_.forward(ops, {.y_nc = x_nhd, .x_nc = before_nhd_.data(), .n = n * heads_});
        }
        void backward(kernels::Ops<Real>& ops, Real* d_nhd, std::int64_t n) {
            norm_.backward(ops, {.dx_nc = d_nhd,
                                 .dy_nc = d_nhd,
                                 .x_nc = before_nhd_.data(),
                                 .n = n * heads_,
                                 .accumulate_dx = false});
        }

      private:
        const std::int64_t heads_;
        Norm<Real> norm_;
        tensor::Buffer<Real> before_nhd_;
        const std::int64_t size_;
    };

    // Several projections of one input: its gradient is the sum of theirs.
    struct Consumer {
        const Linear<Real>* layer;
        const Real* dy_no;
    };
    void backward_shared(Real* dx_nc, std::int64_t n, const Real* x_nc,
                         std::initializer_list<Consumer> consumers) {
        bool first = true;
        for (const Consumer& consumer : consumers) {
            consumer.layer->backward(ops_, {.dx_ni = dx_nc,
                                            .dy_no = consumer.dy_no,
                                            .x_ni = x_nc,
                                            .n = n,
                                            .accumulate_dx = !first});
            first = false;
        }
    }

    void turn(Real* x, std::int64_t heads, BatchShape shape, bool inverse) {
        ops_.rope({.x_nhd = x,
                   .stride = heads * config_.head_size(),
                   .cos_tk = scratch_.cos_tk.data(),
                   .sin_tk = scratch_.sin_tk.data(),
                   .b = shape.b,
                   .t = shape.t,
                   .h = heads,
                   .d = config_.head_size(),
                   .inverse = inverse});
    }

    double scale() const { return 1 / std::sqrt(static_cast<double>(config_.head_size())); }

    void attend(BatchShape shape) {
        ops_.attention(
            kernels::AttentionForward<Real>{.out_nhd = attended_nhd_.data(),
                                            .lse_bht = lse_bht_.data(),
                                            .q_nhd = q_nhd_.data(),
                                            .k_ngd = k_ngd_.data(),
                                            .v_ngd = v_ngd_.data(),
                                            .first_key_bt = scratch_.first_keys(windowed_),
                                            .q_stride = config_.query_width(),
                                            .k_stride = config_.kv_width(),
                                            .v_stride = config_.kv_width(),
                                            .b = shape.b,
                                            .t = shape.t,
                                            .h = config_.heads,
                                            .g = config_.kv_heads,
                                            .d = config_.head_size(),
                                            .scale = scale(),
                                            .scratch = scratch_.attention.span()});
    }

    void attend_backward(Real* dq, Real* dk, Real* dv, const Real* dout_nc, BatchShape shape) {
        ops_.attention(
            kernels::AttentionBackward<Real>{.dq_nhd = dq,
                                             .dk_ngd = dk,
                                             .dv_ngd = dv,
                                             .dout_nhd = dout_nc,
                                             .out_nhd = attended_nhd_.data(),
                                             .lse_bht = lse_bht_.data(),
                                             .q_nhd = q_nhd_.data(),
                                             .k_ngd = k_ngd_.data(),
                                             .v_ngd = v_ngd_.data(),
                                             .first_key_bt = scratch_.first_keys(windowed_),
                                             .q_stride = config_.query_width(),
                                             .k_stride = config_.kv_width(),
                                             .v_stride = config_.kv_width(),
                                             .b = shape.b,
                                             .t = shape.t,
                                             .h = config_.heads,
                                             .g = config_.kv_heads,
                                             .d = config_.head_size(),
                                             .scale = scale(),
                                             .scratch = scratch_.attention.span()});
    }

    const spec::ModelConfig config_;
    const bool windowed_;
    kernels::Ops<Real>& ops_;
    Scratch<Real>& scratch_;
    Norm<Real> norm1_;
    const Linear<Real> query_, key_, value_, project_;
    Norm<Real> norm2_;
    const Linear<Real> gate_, up_, down_;
    std::optional<HeadNorm> query_norm_, key_norm_;

    tensor::Buffer<Real> normed1_nc_;
    tensor::Buffer<Real> q_nhd_, k_ngd_, v_ngd_;  // q and k after their turn.
    tensor::Buffer<Real> lse_bht_;
    tensor::Buffer<Real> attended_nhd_;
    tensor::Buffer<Real> middle_nc_;  // The residual stream between the two parts.
    tensor::Buffer<Real> normed2_nc_;
    tensor::Buffer<Real> gate_nf_, up_nf_;  // Their gradients replace them in the backward pass.
    tensor::Buffer<Real> active_nf_;
};

}  // namespace

template <class Real>
std::unique_ptr<Block<Real>> make_llama_block(const BlockParts<Real>& parts, std::int64_t layer) {
    return std::make_unique<LlamaBlock<Real>>(parts, layer);
}

template std::unique_ptr<Block<float>> make_llama_block(const BlockParts<float>&, std::int64_t);
template std::unique_ptr<Block<double>> make_llama_block(const BlockParts<double>&, std::int64_t);

}  // namespace gruca::model
