// model/decoder.h
//
// A decoder-only transformer, GPT-2 or Llama shaped: token ids in, loss and gradients out. This is
// the header to read first in this room.
//
//   Decoder<float> decoder(config, ops, {weights, &gradients}, {.b = 8, .t = 256});
//   Loss loss = decoder.train({tokens, targets, shape}, 1.0);   // gradients += d(loss.sum)
//
// All memory is allocated by the constructor and none later. Losses and gradients are sums over
// tokens, never means: whoever adds up micro-batches and ranks divides once, by all tokens.
// Owned by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/block.h"

namespace gruca::model {

struct Batch {
    std::span<const std::int32_t> tokens;   // [b, t]
    std::span<const std::int32_t> targets;  // [b, t]; kernels::kIgnoredTarget: not counted.
    BatchShape shape;
    // Where in its sequence the document of each token begins, [b, t]: attention does not reach
    // back beyond it. Empty: a sequence is one document.
    std::span<const std::int32_t> document_starts = {};
};

struct Loss {
    double sum = 0;  // Of the cross entropies, in nats.
    std::int64_t tokens = 0;
};

// Throws invalid_argument, naming the first id that is no row of the embedding.
void require_tokens_below(std::span<const std::int32_t> tokens, std::int64_t vocabulary_size);

template <class Real>
class Decoder {
  public:
    Decoder(const spec::ModelConfig& config, kernels::Ops<Real>& ops,
            const Bindings<Real>& bindings, BatchShape largest);

    // Forward and backward. Adds `dloss` times the gradient of the loss's sum to the gradients.
    Loss train(const Batch& batch, double dloss);

    // Forward only.
    Loss evaluate(const Batch& batch);

    // Scores of every word for the token after the last of `tokens`, one sequence.
    void next_token_logits(std::span<const std::int32_t> tokens, std::span<Real> logits_v);

    const spec::ModelConfig& config() const { return config_; }

  private:
    void embed(const Batch& batch);
    void embed_backward(const Batch& batch);
    void state_first_keys(const Batch& batch);
    void forward(const Batch& batch);
    Loss head(const Batch& batch, bool with_gradient, double dloss);

    Real* stream(std::int64_t layer) {
        return streams_lnc_.data() + layer * largest_.n() * config_.width;
    }

    const spec::ModelConfig config_;
    kernels::Ops<Real>& ops_;
    const BatchShape largest_;
    const bool trains_;
    Scratch<Real> scratch_;
    std::vector<std::unique_ptr<Block<Real>>> blocks_;
    Norm<Real> final_norm_;
    const Linear<Real> output_;
    const Real* token_weight_vc_;
    Real* dtoken_weight_vc_;
    const Real* position_weight_tc_ = nullptr;
    Real* dposition_weight_tc_ = nullptr;

    tensor::Buffer<Real> streams_lnc_;  // The residual stream before each block and after the last.
    tensor::Buffer<Real> normed_nc_;
    tensor::Buffer<Real> d_nc_;
    std::int64_t logit_rows_;  // The head walks the rows in pieces of this many.
    tensor::Buffer<Real> logits_nv_;
    tensor::Buffer<Real> loss_n_;
};

}  // namespace gruca::model
