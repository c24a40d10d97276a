#include <fmt/format.h>

#include <cmath>

#include "model/block.h"

namespace gruca::model {
namespace {

template <class Real>
class Gpt2Block final : public Block<Real> {
  public:
    Gpt2Block(const BlockParts<Real>& parts, const std::string& at)
        : config_(parts.config),
          ops_(parts.ops),
          scratch_(parts.scratch),
          norm1_(parts.bindings, at + "ln_1", config_.norm_epsilon, parts.largest.n()),
          qkv_(parts.bindings, at + "attn.c_attn"),
          project_(parts.bindings, at + "attn.c_proj"),
          norm2_(parts.bindings, at + "ln_2", config_.norm_epsilon, parts.largest.n()),
          expand_(parts.bindings, at + "mlp.c_fc"),
          contract_(parts.bindings, at + "mlp.c_proj"),
          normed1_nc_(parts.largest.n() * config_.width),
          qkv_n3c_(parts.largest.n() * 3 * config_.width),
          lse_bht_(parts.largest.n() * config_.heads),
          attended_nc_(parts.largest.n() * config_.width),
          middle_nc_(parts.largest.n() * config_.width),
          normed2_nc_(parts.largest.n() * config_.width),
          expanded_nf_(parts.largest.n() * config_.hidden),
          active_nf_(parts.largest.n() * config_.hidden) {}

    void forward(Real* y_nc, const Real* x_nc, BatchShape shape) override {
        const std::int64_t n = shape.n(), count = n * config_.width;
        norm1_.forward(ops_, {.y_nc = normed1_nc_.data(), .x_nc = x_nc, .n = n});
        qkv_.forward(ops_, {.y_no = qkv_n3c_.data(), .x_ni = normed1_nc_.data(), .n = n});
        attend(shape);
        project_.forward(ops_, {.y_no = middle_nc_.data(), .x_ni = attended_nc_.data(), .n = n});
        ops_.add({.y = middle_nc_.data(), .a = middle_nc_.data(), .b = x_nc, .count = count});

        norm2_.forward(ops_, {.y_nc = normed2_nc_.data(), .x_nc = middle_nc_.data(), .n = n});
        expand_.forward(ops_, {.y_no = expanded_nf_.data(), .x_ni = normed2_nc_.data(), .n = n});
        ops_.gelu(kernels::GeluForward<Real>{
            .y = active_nf_.data(), .x = expanded_nf_.data(), .count = n * config_.hidden});
        contract_.forward(ops_, {.y_no = y_nc, .x_ni = active_nf_.data(), .n = n});
        ops_.add({.y = y_nc, .a = y_nc, .b = middle_nc_.data(), .count = count});
    }

    void backward(Real* d_nc, const Real* x_nc, BatchShape shape) override {
        const std::int64_t n = shape.n();
        Real* const narrow = scratch_.narrow_nc.data();
        Real* const wide = scratch_.wide.data();
        contract_.backward(ops_, {.dx_ni = wide, .dy_no = d_nc, .x_ni = active_nf_.data(), .n = n});
        ops_.gelu(kernels::GeluBackward<Real>{
            .dx = wide, .dy = wide, .x = expanded_nf_.data(), .count = n * config_.hidden});
        expand_.backward(ops_,
                         {.dx_ni = narrow, .dy_no = wide, .x_ni = normed2_nc_.data(), .n = n});
        norm2_.backward(ops_, {.dx_nc = d_nc,
                               .dy_nc = narrow,
                               .x_nc = middle_nc_.data(),
                               .n = n,
                               .accumulate_dx = true});

        project_.backward(ops_,
                          {.dx_ni = narrow, .dy_no = d_nc, .x_ni = attended_nc_.data(), .n = n});
        attend_backward(wide, narrow, shape);
        qkv_.backward(ops_, {.dx_ni = narrow, .dy_no = wide, .x_ni = normed1_nc_.data(), .n = n});
        norm1_.backward(
            ops_, {.dx_nc = d_nc, .dy_nc = narrow, .x_nc = x_nc, .n = n, .accumulate_dx = true});
    }

  private:
    double scale() const { return 1 / std::sqrt(static_cast<double>(config_.head_size())); }

    void attend(BatchShape shape) {
        const std::int64_t c = config_.width;
        ops_.attention(kernels::AttentionForward<Real>{.out_nhd = attended_nc_.data(),
                                                       .lse_bht = lse_bht_.data(),
                                                       .q_nhd = qkv_n3c_.data(),
                                                       .k_ngd = qkv_n3c_.data() + c,
                                                       .v_ngd = qkv_n3c_.data() + 2 * c,
                                                       .first_key_bt = scratch_.first_keys(false),
                                                       .q_stride = 3 * c,
                                                       .k_stride = 3 * c,
                                                       .v_stride = 3 * c,
                                                       .b = shape.b,
                                                       .t = shape.t,
                                                       .h = config_.heads,
                                                       .g = config_.heads,
                                                       .d = config_.head_size(),
                                                       .scale = scale(),
                                                       .scratch = scratch_.attention.span()});
    }

    void attend_backward(Real* dqkv_n3c, const Real* dout_nc, BatchShape shape) {
        const std::int64_t c = config_.width;
        ops_.attention(kernels::AttentionBackward<Real>{.dq_nhd = dqkv_n3c,
                                                        .dk_ngd = dqkv_n3c + c,
                                                        .dv_ngd = dqkv_n3c + 2 * c,
                                                        .dout_nhd = dout_nc,
                                                        .out_nhd = attended_nc_.data(),
                                                        .lse_bht = lse_bht_.data(),
                                                        .q_nhd = qkv_n3c_.data(),
                                                        .k_ngd = qkv_n3c_.data() + c,
                                                        .v_ngd = qkv_n3c_.data() + 2 * c,
                                                        .first_key_bt = scratch_.first_keys(false),
                                                        .q_stride = 3 * c,
                                                        .k_stride = 3 * c,
                                                        .v_stride = 3 * c,
                                                        .b = shape.b,
                                                        .t = shape.t,
                                                        .h = config_.heads,
                                                        .g = config_.heads,
                                                        .d = config_.head_size(),
                                                        .scale = scale(),
                                                        .scratch = scratch_.attention.span()});
    }

    const spec::ModelConfig config_;
    kernels::Ops<Real>& ops_;
    Scratch<Real>& scratch_;
    Norm<Real> norm1_;
    const Linear<Real> qkv_;
    const Linear<Real> project_;
    Norm<Real> norm2_;
    const Linear<Real> expand_;
    const Linear<Real> contract_;

    tensor::Buffer<Real> normed1_nc_;
    tensor::Buffer<Real> qkv_n3c_;
    tensor::Buffer<Real> lse_bht_;
    tensor::Buffer<Real> attended_nc_;
    tensor::Buffer<Real> middle_nc_;  // The residual stream between the two parts.
    tensor::Buffer<Real> normed2_nc_;
    tensor::Buffer<Real> expanded_nf_;
    tensor::Buffer<Real> active_nf_;
};

}  // namespace

template <class Real>
std::unique_ptr<Block<Real>> make_gpt2_block(const BlockParts<Real>& parts, std::int64_t layer) {
    return std::make_unique<Gpt2Block<Real>>(parts, fmt::format("transformer.h.{}.", layer));
}

template std::unique_ptr<Block<float>> make_gpt2_block(const BlockParts<float>&, std::int64_t);
template std::unique_ptr<Block<double>> make_gpt2_block(const BlockParts<double>&, std::int64_t);

}  // namespace gruca::model
