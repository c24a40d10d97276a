// model/incremental_decoder.h
//
// A decoder that is fed one token at a time and remembers the keys and values of those before, so
// that the next token costs the same whatever came earlier, but for attention itself. Its scores
// are those of Decoder::next_token_logits. For generating text; owned by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/layers.h"

namespace gruca::model {

template <class Real>
class IncrementalDecoder {
  public:
    IncrementalDecoder(const spec::ModelConfig& config, kernels::Ops<Real>& ops,
                       const ParameterSet<Real>& weights);

    // Scores of every word for the token after this one. There must be room: length() below the
    // context length. The token must be below the vocabulary's size.
    std::span<const Real> append(std::int32_t token);

    std::int64_t length() const { return length_; }
    void clear() { length_ = 0; }

  private:
    struct Layer {
        Norm<Real> norm1;
        std::vector<Linear<Real>> qkv;  // One projection for all three (GPT-2), or one each.
        std::optional<Norm<Real>> query_norm, key_norm;  // Over each head.
        Linear<Real> project;
        Norm<Real> norm2;
        std::vector<Linear<Real>> inner;  // Expand (GPT-2), or gate and up.
        Linear<Real> outer;
        tensor::Buffer<Real> keys_tgd, values_tgd;  // Of the tokens so far; keys after their turn.
        std::int64_t window;                        // 0: none.
    };

    Layer make_layer(const Bindings<Real>& bindings, std::int64_t layer) const;
    std::optional<Norm<Real>> head_norm(const Bindings<Real>& bindings, const std::string& name,
                                        std::int64_t heads) const;
    void embed(std::int32_t token);
    void attend(Layer& layer);
    void feed_forward(Layer& layer);
    void norm_heads(std::optional<Norm<Real>>& norm, Real* x_hd, std::int64_t heads);
    void turn(Real* x, std::int64_t heads);
    void mix(const Layer& layer, std::int64_t head);
    bool gpt2() const { return config_.is_gpt2(); }

    const spec::ModelConfig config_;
    kernels::Ops<Real>& ops_;
    const Real* token_weight_vc_;
    const Real* position_weight_tc_ = nullptr;
    std::vector<Layer> layers_;
    Norm<Real> final_norm_;
    Linear<Real> output_;
    std::int64_t length_ = 0;

    tensor::Buffer<Real> stream_c_, normed_c_, added_c_, qkv_, mixed_hd_, inner_, gated_f_;
    tensor::Buffer<Real> cos_k_, sin_k_, logits_v_;
    std::vector<double> frequencies_;  // Of rotary positions.
    std::vector<double> scores_t_, sums_d_;
};

}  // namespace gruca::model
