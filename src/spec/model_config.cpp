#include "spec/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace gruca::spec {
namespace {

constexpr std::int64_t kLayersMax = 256;
constexpr std::int64_t kWidthMax = 32768;
constexpr std::int64_t kHiddenMax = 4 * kWidthMax;
constexpr std::int64_t kHeadSizeMax = 1024;
constexpr std::int64_t kContextMax = 131072;
constexpr std::int64_t kVocabularyMax = 1 << 20;
constexpr double kInitDeviation = 0.02;

// The divisors of `whole` next to `wanted`, below and above: "6 or 8".
std::string nearest_divisors(std::int64_t whole, std::int64_t wanted) {
    std::int64_t below = 0, above = 0;
    for (std::int64_t d = 1; d <= whole; ++d) {
        if (whole % d != 0) continue;
        if (d <= wanted) below = d;
        if (d > wanted && above == 0) above = d;
    }
    if (below == 0) return std::to_string(above);
    if (above == 0) return std::to_string(below);
    return fmt::format("{} or {}", below, above);
}

void check_range(std::vector<std::string>& wrong, const char* what, std::int64_t value,
                 std::int64_t value_max) {
    if (value >= 1 && value <= value_max) return;
    wrong.push_back(fmt::format("{} must be 1 to {}, not {}", what, value_max, value));
}

constexpr std::array kFamilyNames = {"gpt2", "llama", "mistral", "qwen2", "qwen3"};

Json to_json_of(const RopeScaling& scaling) {
    const bool llama3 = scaling.kind == RopeScaling::Kind::llama3;
    return Json::object({{"kind", llama3 ? "llama3" : "linear"},
                         {"factor", scaling.factor},
                         {"low_frequency_factor", scaling.low_frequency_factor},
                         {"high_frequency_factor", scaling.high_frequency_factor},
                         {"original_context_length", scaling.original_context_length}});
}

RopeScaling rope_scaling_of(const Json& json) {
    const bool llama3 = json.at("kind").as_string() == "llama3";
    return {.kind = llama3 ? RopeScaling::Kind::llama3 : RopeScaling::Kind::linear,
            .factor = json.at("factor").as_double(),
            .low_frequency_factor = json.at("low_frequency_factor").as_double(),
            .high_frequency_factor = json.at("high_frequency_factor").as_double(),
            .original_context_length = json.at("original_context_length").as_int()};
}

struct TableBuilder {
    std::vector<Parameter> table = {};

    void matrix(std::string name, std::int64_t rows, std::int64_t columns, double deviation,
                bool transposed = false) {
        table.push_back({.name = std::move(name),
                         .rows = rows,
                         .columns = columns,
                         .is_matrix = true,
                         .transposed_in_file = transposed,
                         .init_deviation = deviation});
    }
    void vector(std::string name, std::int64_t length, double value) {
        table.push_back(
            {.name = std::move(name), .columns = length, .is_matrix = false, .init_mean = value});
    }
    void norm(const std::string& name, std::int64_t width, bool has_bias) {
        vector(name + ".weight", width, 1);
        if (has_bias) vector(name + ".bias", width, 0);
    }
    // As torch.nn.Linear.
    void linear(const std::string& name, std::int64_t rows, std::int64_t columns, double deviation,
                bool has_bias) {
        matrix(name + ".weight", rows, columns, deviation);
        if (has_bias) vector(name + ".bias", rows, 0);
    }
    void conv1d(const std::string& name, std::int64_t rows, std::int64_t columns,
                double deviation) {
        matrix(name + ".weight", rows, columns, deviation, true);
        vector(name + ".bias", rows, 0);
    }
};

void add_gpt2_block(TableBuilder& to, const ModelConfig& c, const std::string& at,
                    double residual) {
    to.norm(at + "ln_1", c.width, true);
    to.conv1d(at + "attn.c_attn", 3 * c.width, c.width, kInitDeviation);
    to.conv1d(at + "attn.c_proj", c.width, c.width, residual);
    to.norm(at + "ln_2", c.width, true);
    to.conv1d(at + "mlp.c_fc", c.hidden, c.width, kInitDeviation);
    to.conv1d(at + "mlp.c_proj", c.width, c.hidden, residual);
}

void add_llama_block(TableBuilder& to, const ModelConfig& c, const std::string& at,
                     double residual) {
    to.norm(at + "input_layernorm", c.width, false);
    to.linear(at + "self_attn.q_proj", c.query_width(), c.width, kInitDeviation, c.qkv_bias);
    to.linear(at + "self_attn.k_proj", c.kv_width(), c.width, kInitDeviation, c.qkv_bias);
    to.linear(at + "self_attn.v_proj", c.kv_width(), c.width, kInitDeviation, c.qkv_bias);
    to.linear(at + "self_attn.o_proj", c.width, c.query_width(), residual, c.output_bias);
    if (c.head_norm) {
        to.norm(at + "self_attn.q_norm", c.head_size(), false);
        to.norm(at + "self_attn.k_norm", c.head_size(), false);
    }
    to.norm(at + "post_attention_layernorm", c.width, false);
    to.linear(at + "mlp.gate_proj", c.hidden, c.width, kInitDeviation, c.feed_forward_bias);
    to.linear(at + "mlp.up_proj", c.hidden, c.width, kInitDeviation, c.feed_forward_bias);
    to.linear(at + "mlp.down_proj", c.width, c.hidden, residual, c.feed_forward_bias);
}

// What only Llama and its relatives have.
void check_relative(std::vector<std::string>& wrong, const ModelConfig& c) {
    if (c.own_head_size < 0 || c.own_head_size > kHeadSizeMax) {
        wrong.push_back(fmt::format("the size of a head must be 1 to {}, not {}", kHeadSizeMax,
                                    c.own_head_size));
    }
    if (c.sliding_window < 0) {
        wrong.push_back(fmt::format("sliding_window must be 1 or more, not {}", c.sliding_window));
    }
    const RopeScaling& rope = c.rope_scaling;
    if (rope.kind == RopeScaling::Kind::none) return;
    if (!(rope.factor >= 1) || !std::isfinite(rope.factor)) {
        wrong.push_back(
            fmt::format("the factor of rotary positions must be 1 or more, not {}", rope.factor));
    }
    if (rope.kind != RopeScaling::Kind::llama3) return;
    if (!(rope.low_frequency_factor > 0) ||
        !(rope.high_frequency_factor > rope.low_frequency_factor) ||
        !std::isfinite(rope.high_frequency_factor)) {
        wrong.push_back(
            fmt::format("high_freq_factor {} must be above low_freq_factor {}, and "
                        "that above 0",
                        rope.high_frequency_factor, rope.low_frequency_factor));
    }
    check_range(wrong, "original_max_position_embeddings", rope.original_context_length,
                kContextMax);
}

}  // namespace

const char* name(Family family) {
    return kFamilyNames[static_cast<std::size_t>(family)];
}

Family family_from(std::string_view text) {
    for (std::size_t i = 0; i < kFamilyNames.size(); ++i) {
        if (text == kFamilyNames[i]) return static_cast<Family>(i);
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("a model must be one of {}, not '{}'",
                                                         fmt::join(kFamilyNames, ", "), text));
}

Json ModelConfig::to_json() const {
    Json json = Json::object({{"architecture", spec::name(family)},
                              {"layers", layers},
                              {"width", width},
                              {"heads", heads},
                              {"kv_heads", kv_heads},
                              {"hidden", hidden},
                              {"context_length", context_length},
                              {"vocabulary_size", vocabulary_size},
                              {"tied_embeddings", tied_embeddings},
                              {"rope_theta", rope_theta},
                              {"norm_epsilon", norm_epsilon}});
    const ModelConfig plain;
    if (own_head_size != plain.own_head_size) json.set("head_size", own_head_size);
    if (qkv_bias) json.set("qkv_bias", true);
    if (output_bias) json.set("output_bias", true);
    if (feed_forward_bias) json.set("feed_forward_bias", true);
    if (head_norm) json.set("head_norm", true);
    if (sliding_window != plain.sliding_window) {
        json.set("sliding_window", sliding_window);
        json.set("first_windowed_layer", first_windowed_layer);
    }
    if (rope_scaling != plain.rope_scaling) json.set("rope_scaling", to_json_of(rope_scaling));
    return json;
}

ModelConfig ModelConfig::from_json(const Json& json) {
    const Json* rope = json.find("rope_scaling");
    return {.family = family_from(json.at("architecture").as_string()),
            .layers = json.at("layers").as_int(),
            .width = json.at("width").as_int(),
            .heads = json.at("heads").as_int(),
            .kv_heads = json.at("kv_heads").as_int(),
            .hidden = json.at("hidden").as_int(),
            .context_length = json.at("context_length").as_int(),
            .vocabulary_size = json.at("vocabulary_size").as_int(),
            .tied_embeddings = json.at("tied_embeddings").as_bool(),
            .norm_epsilon = json.at("norm_epsilon").as_double(),
            .rope_theta = json.at("rope_theta").as_double(),
            .rope_scaling = rope == nullptr ? RopeScaling{} : rope_scaling_of(*rope),
            .own_head_size = json.get_int("head_size"),
            .qkv_bias = json.get_bool("qkv_bias"),
            .output_bias = json.get_bool("output_bias"),
            .feed_forward_bias = json.get_bool("feed_forward_bias"),
            .head_norm = json.get_bool("head_norm"),
            .sliding_window = json.get_int("sliding_window"),
            .first_windowed_layer = json.get_int("first_windowed_layer")};
}

void require_valid(const ModelConfig& c) {
    std::vector<std::string> wrong;
    check_range(wrong, "layers", c.layers, kLayersMax);
    check_range(wrong, "width", c.width, kWidthMax);
    check_range(wrong, "heads", c.heads, c.width > 0 ? c.width : 1);
    check_range(wrong, "kv_heads", c.kv_heads, c.heads > 0 ? c.heads : 1);
    check_range(wrong, "hidden", c.hidden, kHiddenMax);
    check_range(wrong, "context_length", c.context_length, kContextMax);
    check_range(wrong, "vocabulary_size", c.vocabulary_size, kVocabularyMax);
    if (wrong.empty() && c.own_head_size == 0 && c.width % c.heads != 0) {
        wrong.push_back(fmt::format("width {} is not divisible by heads {}; nearest heads: {}",
                                    c.width, c.heads, nearest_divisors(c.width, c.heads)));
    }
    if (wrong.empty() && c.heads % c.kv_heads != 0) {
        wrong.push_back(fmt::format("heads {} is not divisible by kv_heads {}; nearest: {}",
                                    c.heads, c.kv_heads, nearest_divisors(c.heads, c.kv_heads)));
    }
    const bool gpt2 = c.is_gpt2();
    if (wrong.empty() && gpt2 && c.kv_heads != c.heads) {
        wrong.push_back(
            fmt::format("gpt2 has as many kv_heads as heads ({}), not {}", c.heads, c.kv_heads));
    }
    if (wrong.empty() && !gpt2 && c.head_size() % 2 != 0) {
        wrong.push_back(fmt::format("{} rotates pairs: the size of a head must be even, not {}",
                                    name(c.family), c.head_size()));
    }
    check_relative(wrong, c);
    if (!(c.norm_epsilon > 0) || !std::isfinite(c.norm_epsilon)) {
        wrong.push_back(fmt::format("norm_epsilon must be above 0, not {}", c.norm_epsilon));
    }
    if (!(c.rope_theta > 1) || !std::isfinite(c.rope_theta)) {
        wrong.push_back(fmt::format("rope_theta must be above 1, not {}", c.rope_theta));
    }
    if (!wrong.empty()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("{}", fmt::join(wrong, "; ")));
    }
}

std::vector<std::int64_t> Parameter::file_shape() const {
    if (!is_matrix) return {columns};
    if (transposed_in_file) return {columns, rows};
    return {rows, columns};
}

std::vector<Parameter> parameter_table(const ModelConfig& c) {
    // Each block adds twice to the residual stream; this keeps its variance independent of depth.
    const double residual = kInitDeviation / std::sqrt(2.0 * static_cast<double>(c.layers));
    const bool gpt2 = c.is_gpt2();
    TableBuilder to;
    if (gpt2) {
        to.matrix("transformer.wte.weight", c.vocabulary_size, c.width, kInitDeviation);
        to.matrix("transformer.wpe.weight", c.context_length, c.width, kInitDeviation);
    } else {
        to.matrix("model.embed_tokens.weight", c.vocabulary_size, c.width, kInitDeviation);
    }
    for (std::int64_t layer = 0; layer < c.layers; ++layer) {
        if (gpt2) {
            add_gpt2_block(to, c, fmt::format("transformer.h.{}.", layer), residual);
        } else {
            add_llama_block(to, c, fmt::format("model.layers.{}.", layer), residual);
        }
    }
    to.norm(gpt2 ? "transformer.ln_f" : "model.norm", c.width, gpt2);
    if (!c.tied_embeddings) {
        to.matrix("lm_head.weight", c.vocabulary_size, c.width, kInitDeviation);
    }
    return std::move(to.table);
}

std::int64_t parameter_count(const ModelConfig& config) {
    std::int64_t count = 0;
    for (const Parameter& parameter : parameter_table(config)) count += parameter.count();
    return count;
}

}  // namespace gruca::spec
