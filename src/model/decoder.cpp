#include "model/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "model/rope.h"

namespace gruca::model {
namespace {

constexpr std::int64_t kLogitElements = 1 << 21;  // Eight MiB of floats: stays in the cache.
constexpr std::int64_t kLogitRowsMin = 256;  // Fewer would not pay for packing the head's weights.

std::string embedding_name(const spec::ModelConfig& config) {
    return config.is_gpt2() ? "transformer.wte" : "model.embed_tokens";
}

}  // namespace

void require_tokens_below(std::span<const std::int32_t> tokens, std::int64_t vocabulary_size) {
    for (const std::int32_t token : tokens) {
        if (token >= 0 && token < vocabulary_size) continue;
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the data holds a token id outside the model's vocabulary: was it "
                                "made with another tokenizer? id {}, vocabulary {}",
                                token, vocabulary_size));
    }
}

template <class Real>
Scratch<Real>::Scratch(const spec::ModelConfig& config, const kernels::Ops<Real>& ops,
                       BatchShape largest)
    : narrow_nc(largest.n() * std::max(config.width, config.query_width())),
      wide(largest.n() * std::max({config.hidden, 3 * config.width,
                                   config.query_width() + 2 * config.kv_width()})),
      attention(ops.attention_scratch_count(largest.t, config.heads, config.kv_heads,
                                            config.head_size())) {
    if (config.is_gpt2()) return;
    const std::vector<double> frequencies = rotary_frequencies(config);
    const auto pairs = std::ssize(frequencies);
    cos_tk = tensor::Buffer<Real>(largest.t * pairs);
    sin_tk = tensor::Buffer<Real>(largest.t * pairs);
    for (std::int64_t t = 0; t < largest.t; ++t) {
        for (std::int64_t k = 0; k < pairs; ++k) {
            const double angle = static_cast<double>(t) * frequencies[static_cast<std::size_t>(k)];
            cos_tk[t * pairs + k] = static_cast<Real>(std::cos(angle));
            sin_tk[t * pairs + k] = static_cast<Real>(std::sin(angle));
        }
    }
}

template <class Real>
Decoder<Real>::Decoder(const spec::ModelConfig& config, kernels::Ops<Real>& ops,
                       const Bindings<Real>& bindings, BatchShape largest)
    : config_(config),
      ops_(ops),
      largest_(largest),
      trains_(bindings.gradients != nullptr),
      scratch_(config, ops, largest),
      final_norm_(bindings, config.is_gpt2() ? "transformer.ln_f" : "model.norm",
                  config.norm_epsilon, largest.n()),
      output_(bindings, config.tied_embeddings ? embedding_name(config) : "lm_head"),
      token_weight_vc_(bindings.weight(embedding_name(config) + ".weight")),
      dtoken_weight_vc_(bindings.gradient(embedding_name(config) + ".weight")),
      streams_lnc_((config.layers + 1) * largest.n() * config.width),
      normed_nc_(largest.n() * config.width),
      d_nc_(trains_ ? largest.n() * config.width : 0),
      logit_rows_(
          std::min(std::max(kLogitElements / config.vocabulary_size, kLogitRowsMin), largest.n())),
      logits_nv_(logit_rows_ * config.vocabulary_size),
      loss_n_(logit_rows_) {
    CHECK(largest.t <= config.context_length, "sequences of {} tokens, context {}", largest.t,
          config.context_length);
    if (config.is_gpt2()) {
        position_weight_tc_ = bindings.weight("transformer.wpe.weight");
        dposition_weight_tc_ = bindings.gradient("transformer.wpe.weight");
    }
    const BlockParts<Real> parts{config_, ops_, bindings, scratch_, largest_};
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        blocks_.push_back(config.is_gpt2() ? make_gpt2_block(parts, layer)
                                           : make_llama_block(parts, layer));
    }
}

template <class Real>
void Decoder<Real>::embed(const Batch& batch) {
    ops_.embedding(kernels::EmbeddingForward<Real>{.y_nc = stream(0),
                                                   .token_n = batch.tokens.data(),
                                                   .token_weight_vc = token_weight_vc_,
                                                   .position_weight_tc = position_weight_tc_,
                                                   .b = batch.shape.b,
                                                   .t = batch.shape.t,
                                                   .c = config_.width,
                                                   .v = config_.vocabulary_size});
}

template <class Real>
void Decoder<Real>::embed_backward(const Batch& batch) {
    ops_.embedding(kernels::EmbeddingBackward<Real>{.dtoken_weight_vc = dtoken_weight_vc_,
                                                    .dposition_weight_tc = dposition_weight_tc_,
                                                    .dy_nc = d_nc_.data(),
                                                    .token_n = batch.tokens.data(),
                                                    .b = batch.shape.b,
                                                    .t = batch.shape.t,
                                                    .c = config_.width,
                                                    .v = config_.vocabulary_size});
}

template <class Real>
void Decoder<Real>::state_first_keys(const Batch& batch) {
    const auto& documents = batch.document_starts;
    CHECK(documents.empty() || std::ssize(documents) == batch.shape.n());
    scratch_.first_key_bt.assign(documents.begin(), documents.end());
    scratch_.windowed_first_key_bt.clear();
    const std::int64_t window = config_.sliding_window;
    for (std::int64_t n = 0; window > 0 && n < batch.shape.n(); ++n) {
        const std::int64_t document =
            documents.empty() ? 0 : documents[static_cast<std::size_t>(n)];
        const std::int64_t first = std::max(document, n % batch.shape.t + 1 - window);
        scratch_.windowed_first_key_bt.push_back(static_cast<std::int32_t>(first));
    }
}

template <class Real>
void Decoder<Real>::forward(const Batch& batch) {
    CHECK(batch.shape.b >= 1 && batch.shape.t >= 1 && batch.shape.t <= largest_.t &&
              batch.shape.n() <= largest_.n(),
          "batch [{}, {}] in memory for [{}, {}]", batch.shape.b, batch.shape.t, largest_.b,
          largest_.t);
    CHECK(std::ssize(batch.tokens) == batch.shape.n());
    require_tokens_below(batch.tokens, config_.vocabulary_size);
    state_first_keys(batch);
    embed(batch);
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
        blocks_[static_cast<std::size_t>(layer)]->forward(stream(layer + 1), stream(layer),
                                                          batch.shape);
    }
    final_norm_.forward(
        ops_, {.y_nc = normed_nc_.data(), .x_nc = stream(config_.layers), .n = batch.shape.n()});
}

// The logits are the largest thing in a small model: they are made, turned into their gradient and
// used up piece by piece. The gradient of the final norm's output ends in the scratch.
template <class Real>
Loss Decoder<Real>::head(const Batch& batch, bool with_gradient, double dloss) {
    CHECK(std::ssize(batch.targets) == batch.shape.n());
    Loss loss;
    Real* const dnormed_nc = scratch_.narrow_nc.data();
    for (std::int64_t at = 0; at < batch.shape.n(); at += logit_rows_) {
        const std::int64_t n = std::min(logit_rows_, batch.shape.n() - at);
        const Real* const x_nc = normed_nc_.data() + at * config_.width;
        output_.forward(ops_, {.y_no = logits_nv_.data(), .x_ni = x_nc, .n = n});
        ops_.cross_entropy({.loss_n = loss_n_.data(),
                            .dlogits_nv = with_gradient ? logits_nv_.data() : nullptr,
                            .loss_sum = &loss.sum,
                            .target_count = &loss.tokens,
                            .logits_nv = logits_nv_.data(),
                            .target_n = batch.targets.data() + at,
                            .n = n,
                            .v = config_.vocabulary_size,
                            .dloss = dloss});
        if (!with_gradient) continue;
        output_.backward(ops_, {.dx_ni = dnormed_nc + at * config_.width,
                                .dy_no = logits_nv_.data(),
                                .x_ni = x_nc,
                                .n = n});
    }
    return loss;
}

template <class Real>
Loss Decoder<Real>::train(const Batch& batch, double dloss) {
    CHECK(trains_, "a decoder without gradients");
    forward(batch);
    for (const std::int32_t target : batch.targets) {
        if (target != kernels::kIgnoredTarget) {
            require_tokens_below(std::span(&target, 1), config_.vocabulary_size);
        }
    }
    const Loss loss = head(batch, true, dloss);
    final_norm_.backward(ops_, {.dx_nc = d_nc_.data(),
                                .dy_nc = scratch_.narrow_nc.data(),
                                .x_nc = stream(config_.layers),
                                .n = batch.shape.n(),
                                .accumulate_dx = false});
    for (std::int64_t layer = config_.layers; layer-- > 0;) {
        blocks_[static_cast<std::size_t>(layer)]->backward(d_nc_.data(), stream(layer),
                                                           batch.shape);
    }
    embed_backward(batch);
    ops_.finish();
    return loss;
}

template <class Real>
Loss Decoder<Real>::evaluate(const Batch& batch) {
    forward(batch);
    for (const std::int32_t target : batch.targets) {
        if (target != kernels::kIgnoredTarget) {
            require_tokens_below(std::span(&target, 1), config_.vocabulary_size);
        }
    }
    const Loss loss = head(batch, false, 1);
    ops_.finish();
    return loss;
}

template <class Real>
void Decoder<Real>::next_token_logits(std::span<const std::int32_t> tokens,
                                      std::span<Real> logits_v) {
    CHECK(std::ssize(logits_v) == config_.vocabulary_size);
    const std::int64_t t = std::ssize(tokens);
    forward({.tokens = tokens, .targets = {}, .shape = {.b = 1, .t = t}});
    output_.forward(
        ops_,
        {.y_no = logits_v.data(), .x_ni = normed_nc_.data() + (t - 1) * config_.width, .n = 1});
    ops_.finish();
}

template struct Scratch<float>;
template struct Scratch<double>;
template class Decoder<float>;
template class Decoder<double>;

}  // namespace gruca::model
