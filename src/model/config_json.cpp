#include "model/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"

namespace gruca::model {
namespace {

using spec::Family;
using spec::ModelConfig;
using spec::RopeScaling;

struct FamilyFacts {
    Family family;
    const char* architecture;  // In "architectures".
};
constexpr std::array kFamilies = {
    FamilyFacts{Family::gpt2, "GPT2LMHeadModel"}, FamilyFacts{Family::llama, "LlamaForCausalLM"},
    FamilyFacts{Family::mistral, "MistralForCausalLM"},
    FamilyFacts{Family::qwen2, "Qwen2ForCausalLM"}, FamilyFacts{Family::qwen3, "Qwen3ForCausalLM"}};

constexpr std::int64_t kMistralWindow = 4096;
constexpr std::int64_t kQwenWindow = 4096;
constexpr std::int64_t kQwenMaxWindowLayers = 28;
constexpr std::int64_t kQwen3HeadSize = 128;

// A setting that changes what the model computes.
void require_setting(const Json& json, const char* key, const Json& wanted) {
    const Json* found = json.find(key);
    if (found == nullptr || *found == wanted) return;
    if (found->is_number() && wanted.is_number() && found->as_double() == wanted.as_double()) {
        return;
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("config.json asks for {} = {}; only {} is supported", key,
                            found->dump(), wanted.dump()));
}

std::string rope_type_of(const Json& rope) {
    return rope.get_string("rope_type", rope.get_string("type", "default"));
}

RopeScaling rope_scaling_of(const Json& rope) {
    const std::string type = rope_type_of(rope);
    if (type == "default") return {};
    if (type == "linear") {
        return {.kind = RopeScaling::Kind::linear, .factor = rope.at("factor").as_double()};
    }
    if (type == "llama3") {
        return {.kind = RopeScaling::Kind::llama3,
                .factor = rope.at("factor").as_double(),
                .low_frequency_factor = rope.at("low_freq_factor").as_double(),
                .high_frequency_factor = rope.at("high_freq_factor").as_double(),
                .original_context_length = rope.at("original_max_position_embeddings").as_int()};
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("config.json asks for rotary positions of type '{}'; supported are "
                            "default, linear and llama3",
                            type));
}

// Newer files have rope_parameters, with theta in it; older ones rope_theta and rope_scaling.
void read_rope(const Json& json, ModelConfig& config) {
    config.rope_theta = json.get_double("rope_theta", 10000);
    require_setting(json, "partial_rotary_factor", 1);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const Json* rope = json.find(key);
        if (rope == nullptr) continue;
        require_setting(*rope, "partial_rotary_factor", 1);
        config.rope_scaling = rope_scaling_of(*rope);
        config.rope_theta = rope->get_double("rope_theta", config.rope_theta);
    }
}

// The layers from some layer on have the window, which is what a list of types has to say too.
void read_layer_types(const Json& json, ModelConfig& config) {
    const Json* types = json.find("layer_types");
    if (types == nullptr) return;
    const Json::Array& all = types->as_array();
    const auto slides = [](const Json& type) { return type.as_string() == "sliding_attention"; };
    const auto first = std::find_if(all.begin(), all.end(), slides);
    const bool known = std::all_of(all.begin(), all.end(), [&](const Json& type) {
        return slides(type) || type.as_string() == "full_attention";
    });
    if (!known || !std::all_of(first, all.end(), slides)) {
        throw Error(ErrorCode::invalid_argument,
                    "config.json has layer_types that are not full_attention up to some layer and "
                    "sliding_attention from it on; only that is supported");
    }
    config.first_windowed_layer = first - all.begin();
    if (first == all.end()) config.sliding_window = config.first_windowed_layer = 0;
}

void read_qwen_window(const Json& json, ModelConfig& config) {
    if (!json.get_bool("use_sliding_window", false)) return;
    config.sliding_window = json.get_int("sliding_window", kQwenWindow);
    config.first_windowed_layer = json.get_int("max_window_layers", kQwenMaxWindowLayers);
    read_layer_types(json, config);
}

ModelConfig gpt2_config_of(const Json& json) {
    require_setting(json, "activation_function", "gelu_new");
    require_setting(json, "scale_attn_by_inverse_layer_idx", false);
    require_setting(json, "scale_attn_weights", true);
    require_setting(json, "add_cross_attention", false);
    const std::int64_t width = json.get_int("n_embd", 768);
    const std::int64_t heads = json.get_int("n_head", 12);
    return {.family = Family::gpt2,
            .layers = json.get_int("n_layer", 12),
            .width = width,
            .heads = heads,
            .kv_heads = heads,
            .hidden = json.get_int("n_inner", 4 * width),
            .context_length = json.get_int("n_positions", 1024),
            .vocabulary_size = json.get_int("vocab_size", 50257),
            .tied_embeddings = json.get_bool("tie_word_embeddings", true),
            .norm_epsilon = json.get_double("layer_norm_epsilon", 1e-5)};
}

std::int64_t default_context_length(Family family) {
    if (family == Family::mistral) return 131072;
    return family == Family::llama ? 2048 : 32768;
}

// What the families have in common.
ModelConfig llama_like_config_of(const Json& json, Family family) {
    require_setting(json, "hidden_act", "silu");
    const std::int64_t heads = json.at("num_attention_heads").as_int();
    ModelConfig config{
        .family = family,
        .layers = json.at("num_hidden_layers").as_int(),
        .width = json.at("hidden_size").as_int(),
        .heads = heads,
        .kv_heads = json.get_int("num_key_value_heads", heads),
        .hidden = json.at("intermediate_size").as_int(),
        .context_length = json.get_int("max_position_embeddings", default_context_length(family)),
        .vocabulary_size = json.at("vocab_size").as_int(),
        .tied_embeddings = json.get_bool("tie_word_embeddings", false),
        .norm_epsilon = json.get_double("rms_norm_eps", 1e-6)};
    const std::int64_t size =
        json.get_int("head_dim", family == Family::qwen3 ? kQwen3HeadSize : 0);
    const bool is_usual = heads > 0 && size * heads == config.width;
    config.own_head_size = is_usual ? 0 : size;
    read_rope(json, config);
    return config;
}

ModelConfig llama_config_of(const Json& json) {
    ModelConfig config = llama_like_config_of(json, Family::llama);
    config.qkv_bias = config.output_bias = json.get_bool("attention_bias", false);
    config.feed_forward_bias = json.get_bool("mlp_bias", false);
    return config;
}

ModelConfig mistral_config_of(const Json& json) {
    ModelConfig config = llama_like_config_of(json, Family::mistral);
    // Null says that there is none; a member left out, that it is the usual one.
    bool is_null = false;
    for (const auto& [key, value] : json.as_object()) {
        is_null = is_null || (key == "sliding_window" && value.is_null());
    }
    if (!is_null) config.sliding_window = json.get_int("sliding_window", kMistralWindow);
    return config;
}

ModelConfig qwen2_config_of(const Json& json) {
    ModelConfig config = llama_like_config_of(json, Family::qwen2);
    config.qkv_bias = true;
    read_qwen_window(json, config);
    return config;
}

ModelConfig qwen3_config_of(const Json& json) {
    ModelConfig config = llama_like_config_of(json, Family::qwen3);
    config.head_norm = true;
    config.qkv_bias = config.output_bias = json.get_bool("attention_bias", false);
    read_qwen_window(json, config);
    return config;
}

Json gpt2_json(const ModelConfig& c) {
    return Json::object({{"vocab_size", c.vocabulary_size},
                         {"n_positions", c.context_length},
                         {"n_ctx", c.context_length},
                         {"n_embd", c.width},
                         {"n_layer", c.layers},
                         {"n_head", c.heads},
                         {"n_inner", c.hidden},
                         {"activation_function", "gelu_new"},
                         {"resid_pdrop", 0.0},
                         {"embd_pdrop", 0.0},
                         {"attn_pdrop", 0.0},
                         {"layer_norm_epsilon", c.norm_epsilon},
                         {"scale_attn_weights", true}});
}

Json rope_json(const ModelConfig& c) {
    const RopeScaling& scaling = c.rope_scaling;
    Json json = Json::object({{"rope_type", "default"}, {"rope_theta", c.rope_theta}});
    if (scaling.kind == RopeScaling::Kind::none) return json;
    json.set("rope_type", scaling.kind == RopeScaling::Kind::linear ? "linear" : "llama3");
    json.set("factor", scaling.factor);
    if (scaling.kind == RopeScaling::Kind::linear) return json;
    json.set("low_freq_factor", scaling.low_frequency_factor);
    json.set("high_freq_factor", scaling.high_frequency_factor);
    json.set("original_max_position_embeddings", scaling.original_context_length);
    return json;
}

void add_window(const ModelConfig& c, Json& json) {
    if (c.family != Family::mistral && c.family != Family::qwen2 && c.family != Family::qwen3) {
        return;
    }
    json.set("sliding_window", nullptr);
    if (c.sliding_window > 0) json.set("sliding_window", c.sliding_window);
    if (c.family == Family::mistral) return;
    json.set("use_sliding_window", c.sliding_window > 0);
    json.set("max_window_layers", c.sliding_window > 0 ? c.first_windowed_layer : c.layers);
}

Json llama_like_json(const ModelConfig& c) {
    Json json = Json::object({{"vocab_size", c.vocabulary_size},
                              {"max_position_embeddings", c.context_length},
                              {"hidden_size", c.width},
                              {"intermediate_size", c.hidden},
                              {"num_hidden_layers", c.layers},
                              {"num_attention_heads", c.heads},
                              {"num_key_value_heads", c.kv_heads},
                              {"head_dim", c.head_size()},
                              {"hidden_act", "silu"},
                              {"rms_norm_eps", c.norm_epsilon},
                              {"rope_theta", c.rope_theta},
                              {"rope_parameters", rope_json(c)},
                              {"attention_dropout", 0.0}});
    // For readers that know nothing of rope_parameters.
    if (c.rope_scaling.kind != RopeScaling::Kind::none) json.set("rope_scaling", rope_json(c));
    if (c.family == Family::llama || c.family == Family::qwen3) {
        json.set("attention_bias", c.qkv_bias);
    }
    if (c.family == Family::llama) json.set("mlp_bias", c.feed_forward_bias);
    add_window(c, json);
    return json;
}

}  // namespace

Json config_json(const ModelConfig& config) {
    Json json = Json::object({{"architectures", Json::array()}});
    for (const FamilyFacts& facts : kFamilies) {
        if (facts.family == config.family)
            json.set("architectures", Json::array({facts.architecture}));
    }
    json.set("model_type", name(config.family));
    const Json shape = config.is_gpt2() ? gpt2_json(config) : llama_like_json(config);
    for (const auto& [key, value] : shape.as_object()) json.set(key, value);
    return json;
}

ModelConfig config_of_json(const Json& json) {
    switch (spec::family_from(json.get_string("model_type"))) {
        case Family::gpt2:
            return gpt2_config_of(json);
        case Family::llama:
            return llama_config_of(json);
        case Family::mistral:
            return mistral_config_of(json);
        case Family::qwen2:
            return qwen2_config_of(json);
        case Family::qwen3:
            return qwen3_config_of(json);
    }
    throw Error(ErrorCode::internal, "a model family without a reader");
}

}  // namespace gruca::model
