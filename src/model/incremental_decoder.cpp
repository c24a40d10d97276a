#include "model/incremental_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/rope.h"

namespace gruca::model {
namespace {

std::string embedding_name(const spec::ModelConfig& config) {
    return config.is_gpt2() ? "transformer.wte" : "model.embed_tokens";
}

}  // namespace

template <class Real>
IncrementalDecoder<Real>::IncrementalDecoder(const spec::ModelConfig& config,
                                             kernels::Ops<Real>& ops,
                                             const ParameterSet<Real>& weights)
    : config_(config),
      ops_(ops),
      token_weight_vc_(Bindings<Real>{weights, nullptr}.weight(embedding_name(config) + ".weight")),
      final_norm_({weights, nullptr}, gpt2() ? "transformer.ln_f" : "model.norm",
                  config.norm_epsilon, 1),
      output_({weights, nullptr}, config.tied_embeddings ? embedding_name(config) : "lm_head"),
      stream_c_(config.width),
      normed_c_(config.width),
      added_c_(config.width),
      qkv_(config.query_width() + 2 * config.kv_width()),
      mixed_hd_(config.query_width()),
      inner_(2 * config.hidden),
      gated_f_(config.hidden),
      cos_k_(config.head_size() / 2 + 1),
      sin_k_(config.head_size() / 2 + 1),
      logits_v_(config.vocabulary_size),
      frequencies_(rotary_frequencies(config)),
      scores_t_(static_cast<std::size_t>(config.context_length)),
      sums_d_(static_cast<std::size_t>(config.head_size())) {
    const Bindings<Real> bindings{weights, nullptr};
    if (gpt2()) position_weight_tc_ = bindings.weight("transformer.wpe.weight");
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        layers_.push_back(make_layer(bindings, layer));
    }
}

template <class Real>
typename IncrementalDecoder<Real>::Layer IncrementalDecoder<Real>::make_layer(
    const Bindings<Real>& bindings, std::int64_t layer) const {
    const std::string at = fmt::format("{}.{}.", gpt2() ? "transformer.h" : "model.layers", layer);
    const double epsilon = config_.norm_epsilon;
    const std::int64_t cache = config_.context_length * config_.kv_width();
    const auto linears = [&](std::initializer_list<const char*> names) {
        std::vector<Linear<Real>> made;
        for (const char* name : names) made.emplace_back(bindings, at + name);
        return made;
    };
    return {.norm1 = Norm<Real>(bindings, at + (gpt2() ? "ln_1" : "input_layernorm"), epsilon, 1),
            .qkv = gpt2() ? linears({"attn.c_attn"})
                          : linears({"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}),
            .query_norm = head_norm(bindings, at + "self_attn.q_norm", config_.heads),
            .key_norm = head_norm(bindings, at + "self_attn.k_norm", config_.kv_heads),
            .project = Linear<Real>(bindings, at + (gpt2() ? "attn.c_proj" : "self_attn.o_proj")),
            .norm2 = Norm<Real>(bindings, at + (gpt2() ? "ln_2" : "post_attention_layernorm"),
                                epsilon, 1),
            .inner = gpt2() ? linears({"mlp.c_fc"}) : linears({"mlp.gate_proj", "mlp.up_proj"}),
            .outer = Linear<Real>(bindings, at + (gpt2() ? "mlp.c_proj" : "mlp.down_proj")),
            .keys_tgd = tensor::Buffer<Real>(cache),
            .values_tgd = tensor::Buffer<Real>(cache),
            .window = config_.window_of(layer)};
}

template <class Real>
std::optional<Norm<Real>> IncrementalDecoder<Real>::head_norm(const Bindings<Real>& bindings,
                                                              const std::string& name,
                                                              std::int64_t heads) const {
    if (!config_.head_norm) return std::nullopt;
    return Norm<Real>(bindings, name, config_.norm_epsilon, heads);
}

template <class Real>
void IncrementalDecoder<Real>::embed(std::int32_t token) {
    const Real* const position =
        position_weight_tc_ == nullptr ? nullptr : position_weight_tc_ + length_ * config_.width;
    ops_.embedding(kernels::EmbeddingForward<Real>{.y_nc = stream_c_.data(),
                                                   .token_n = &token,
                                                   .token_weight_vc = token_weight_vc_,
                                                   .position_weight_tc = position,
                                                   .b = 1,
                                                   .t = 1,
                                                   .c = config_.width,
                                                   .v = config_.vocabulary_size});
    for (std::size_t k = 0; k < frequencies_.size(); ++k) {
        const double angle = static_cast<double>(length_) * frequencies_[k];
        cos_k_[static_cast<std::int64_t>(k)] = static_cast<Real>(std::cos(angle));
        sin_k_[static_cast<std::int64_t>(k)] = static_cast<Real>(std::sin(angle));
    }
}

template <class Real>
void IncrementalDecoder<Real>::turn(Real* x, std::int64_t heads) {
    ops_.rope({.x_nhd = x,
               .stride = heads * config_.head_size(),
               .cos_tk = cos_k_.data(),
               .sin_tk = sin_k_.data(),
               .b = 1,
               .t = 1,
               .h = heads,
               .d = config_.head_size(),
               .inverse = false});
}

template <class Real>
void IncrementalDecoder<Real>::norm_heads(std::optional<Norm<Real>>& norm, Real* x_hd,
                                          std::int64_t heads) {
    if (!norm) return;
    std::copy_n(x_hd, heads * config_.head_size(), mixed_hd_.data());
    norm->forward(ops_, {.y_nc = x_hd, .x_nc = mixed_hd_.data(), .n = heads});
}

// One query head over the keys and values so far: softmax(q k / sqrt(d)) v, summed in double.
template <class Real>
void IncrementalDecoder<Real>::mix(const Layer& layer, std::int64_t head) {
    const std::int64_t d = config_.head_size(), stride = config_.kv_width();
    const std::int64_t at = head / (config_.heads / config_.kv_heads) * d;
    const Real* const q = qkv_.data() + head * d;
    const std::int64_t first =
        layer.window > 0 ? std::max<std::int64_t>(length_ + 1 - layer.window, 0) : 0;
    double best = -INFINITY;
    for (std::int64_t t = first; t <= length_; ++t) {
        const Real* const k = layer.keys_tgd.data() + t * stride + at;
        double dot = 0;
        for (std::int64_t i = 0; i < d; ++i) {
            dot += static_cast<double>(q[i]) * static_cast<double>(k[i]);
        }
        double& score = scores_t_[static_cast<std::size_t>(t)];
        score = dot / std::sqrt(static_cast<double>(d));
        best = std::max(best, score);
    }
    double total = 0;
    std::fill(sums_d_.begin(), sums_d_.end(), 0.0);
    for (std::int64_t t = first; t <= length_; ++t) {
        const double weight = std::exp(scores_t_[static_cast<std::size_t>(t)] - best);
        const Real* const v = layer.values_tgd.data() + t * stride + at;
        total += weight;
        for (std::int64_t i = 0; i < d; ++i) {
            sums_d_[static_cast<std::size_t>(i)] += weight * static_cast<double>(v[i]);
        }
    }
    for (std::int64_t i = 0; i < d; ++i) {
        mixed_hd_[head * d + i] = static_cast<Real>(sums_d_[static_cast<std::size_t>(i)] / total);
    }
}

template <class Real>
void IncrementalDecoder<Real>::attend(Layer& layer) {
    const std::int64_t c = config_.width, kv = config_.kv_width();
    const std::int64_t wide = config_.query_width();
    layer.norm1.forward(ops_, {.y_nc = normed_c_.data(), .x_nc = stream_c_.data(), .n = 1});
    Real* y = qkv_.data();
    for (const Linear<Real>& linear : layer.qkv) {
        linear.forward(ops_, {.y_no = y, .x_ni = normed_c_.data(), .n = 1});
        y += y == qkv_.data() ? wide : kv;
    }
    Real* const key = qkv_.data() + wide;
    if (!gpt2()) {
        norm_heads(layer.query_norm, qkv_.data(), config_.heads);
        norm_heads(layer.key_norm, key, config_.kv_heads);
        turn(qkv_.data(), config_.heads);
        turn(key, config_.kv_heads);
    }
    std::copy_n(key, kv, layer.keys_tgd.data() + length_ * kv);
    std::copy_n(key + kv, kv, layer.values_tgd.data() + length_ * kv);
    for (std::int64_t head = 0; head < config_.heads; ++head) mix(layer, head);
    layer.project.forward(ops_, {.y_no = added_c_.data(), .x_ni = mixed_hd_.data(), .n = 1});
    ops_.add({.y = stream_c_.data(), .a = stream_c_.data(), .b = added_c_.data(), .count = c});
}

template <class Real>
void IncrementalDecoder<Real>::feed_forward(Layer& layer) {
    const std::int64_t f = config_.hidden;
    layer.norm2.forward(ops_, {.y_nc = normed_c_.data(), .x_nc = stream_c_.data(), .n = 1});
    Real* y = inner_.data();
    for (const Linear<Real>& linear : layer.inner) {
        linear.forward(ops_, {.y_no = y, .x_ni = normed_c_.data(), .n = 1});
        y += f;
    }
    if (gpt2()) {
        ops_.gelu(kernels::GeluForward<Real>{.y = gated_f_.data(), .x = inner_.data(), .count = f});
    } else {
        ops_.swiglu(kernels::SwigluForward<Real>{
            .y = gated_f_.data(), .gate = inner_.data(), .up = inner_.data() + f, .count = f});
    }
    layer.outer.forward(ops_, {.y_no = added_c_.data(), .x_ni = gated_f_.data(), .n = 1});
    ops_.add({.y = stream_c_.data(),
              .a = stream_c_.data(),
              .b = added_c_.data(),
              .count = config_.width});
}

template <class Real>
std::span<const Real> IncrementalDecoder<Real>::append(std::int32_t token) {
    CHECK(length_ < config_.context_length, "context of {} is full", config_.context_length);
    CHECK(token >= 0 && token < config_.vocabulary_size, "token {}", token);
    embed(token);
    for (Layer& layer : layers_) {
        attend(layer);
        feed_forward(layer);
    }
    ++length_;
    final_norm_.forward(ops_, {.y_nc = normed_c_.data(), .x_nc = stream_c_.data(), .n = 1});
    output_.forward(ops_, {.y_no = logits_v_.data(), .x_ni = normed_c_.data(), .n = 1});
    ops_.finish();
    return logits_v_.span();
}

template class IncrementalDecoder<float>;
template class IncrementalDecoder<double>;

}  // namespace gruca::model
