#include "model/model_directory.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/safetensors.h"

namespace gruca::model {
namespace {

namespace fs = std::filesystem;
using spec::Architecture;
using spec::ModelConfig;

constexpr const char* kWeightsFile = "model.safetensors";

Json end_of_text_json(const ModelExtras& extras) {
    return extras.end_of_text ? Json(*extras.end_of_text) : Json();
}

Json gpt2_config_json(const ModelConfig& c) {
    return Json::object({{"architectures", Json::array({"GPT2LMHeadModel"})},
                         {"model_type", "gpt2"},
                         {"vocab_size", c.vocabulary_size},
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

Json llama_config_json(const ModelConfig& c) {
    return Json::object({{"architectures", Json::array({"LlamaForCausalLM"})},
                         {"model_type", "llama"},
                         {"vocab_size", c.vocabulary_size},
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
                         {"rope_parameters",
                          Json::object({{"rope_type", "default"}, {"rope_theta", c.rope_theta}})},
                         {"attention_bias", false},
                         {"attention_dropout", 0.0},
                         {"mlp_bias", false}});
}

Json config_json(const ModelConfig& c, const ModelExtras& extras) {
    Json json = c.architecture == Architecture::gpt2 ? gpt2_config_json(c) : llama_config_json(c);
    json.set("initializer_range", 0.02);
    json.set("tie_word_embeddings", c.tied_embeddings);
    json.set("bos_token_id", end_of_text_json(extras));
    json.set("eos_token_id", end_of_text_json(extras));
    json.set("torch_dtype", "float32");
    json.set("use_cache", true);
    return json;
}

template <class Real>
std::vector<float> file_order(const spec::Parameter& parameter, std::span<const Real> values) {
    std::vector<float> out(values.size());
    const auto rows = static_cast<std::size_t>(parameter.rows);
    const auto columns = static_cast<std::size_t>(parameter.columns);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            const std::size_t at = parameter.transposed_in_file ? c * rows + r : r * columns + c;
            out[at] = static_cast<float>(values[r * columns + c]);
        }
    }
    return out;
}

// A setting of somebody else's config.json that changes what the model computes.
void require_setting(const Json& json, const char* key, const Json& wanted) {
    const Json* found = json.find(key);
    if (found == nullptr || *found == wanted) return;
    if (found->is_number() && wanted.is_number() && found->as_double() == wanted.as_double())
        return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("config.json asks for {} = {}; only {} is supported", key,
                            found->dump(), wanted.dump()));
}

ModelConfig gpt2_config_of(const Json& json) {
    require_setting(json, "activation_function", "gelu_new");
    require_setting(json, "scale_attn_by_inverse_layer_idx", false);
    require_setting(json, "scale_attn_weights", true);
    const std::int64_t width = json.get_int("n_embd", 768);
    const std::int64_t heads = json.get_int("n_head", 12);
    return {.architecture = Architecture::gpt2,
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

ModelConfig llama_config_of(const Json& json) {
    require_setting(json, "hidden_act", "silu");
    require_setting(json, "attention_bias", false);
    require_setting(json, "mlp_bias", false);
    double theta = json.get_double("rope_theta", 10000);
    for (const char* key : {"rope_parameters", "rope_scaling"}) {
        const Json* rope = json.find(key);
        if (rope == nullptr) continue;
        require_setting(*rope, "rope_type", "default");
        require_setting(*rope, "type", "default");
        theta = rope->get_double("rope_theta", theta);
    }
    const std::int64_t heads = json.at("num_attention_heads").as_int();
    const std::int64_t width = json.at("hidden_size").as_int();
    if (heads > 0) require_setting(json, "head_dim", width / heads);
    return {.architecture = Architecture::llama,
            .layers = json.at("num_hidden_layers").as_int(),
            .width = width,
            .heads = heads,
            .kv_heads = json.get_int("num_key_value_heads", heads),
            .hidden = json.at("intermediate_size").as_int(),
            .context_length = json.get_int("max_position_embeddings", 2048),
            .vocabulary_size = json.at("vocab_size").as_int(),
            .tied_embeddings = json.get_bool("tie_word_embeddings", false),
            .rope_theta = theta,
            .norm_epsilon = json.get_double("rms_norm_eps", 1e-6)};
}

// The original GPT-2 files leave the first part of the names out.
const SafetensorsFile::Entry* find_parameter(const SafetensorsFile& file, const std::string& name) {
    if (const auto* entry = file.find(name)) return entry;
    constexpr std::string_view kPrefix = "transformer.";
    if (!name.starts_with(kPrefix)) return nullptr;
    return file.find(name.substr(kPrefix.size()));
}

}  // namespace

template <class Real>
void write_model_directory(const fs::path& directory, const ModelConfig& config,
                           const ParameterSet<Real>& weights, const ModelExtras& extras) {
    fs::create_directories(directory);
    write_file_atomic(directory / "config.json", config_json(config, extras).dump(2) + "\n");
    write_file_atomic(directory / "generation_config.json",
                      Json::object({{"bos_token_id", end_of_text_json(extras)},
                                    {"eos_token_id", end_of_text_json(extras)}})
                              .dump(2) +
                          "\n");
    if (!extras.tokenizer_json.empty()) {
        write_file_atomic(directory / "tokenizer.json", extras.tokenizer_json);
        write_file_atomic(directory / "tokenizer_config.json",
                          Json::object({{"tokenizer_class", "PreTrainedTokenizerFast"},
                                        {"model_max_length", config.context_length},
                                        {"clean_up_tokenization_spaces", false}})
                                  .dump(2) +
                              "\n");
    }
    std::vector<TensorToWrite> tensors;
    for (std::size_t i = 0; i < weights.table().size(); ++i) {
        const spec::Parameter& parameter = weights.table()[i];
        tensors.push_back(
            {.name = parameter.name,
             .shape = parameter.file_shape(),
             .values = [&weights, &parameter, i] { return file_order(parameter, weights.of(i)); }});
    }
    write_safetensors(directory / kWeightsFile, tensors);
}

ModelConfig read_model_config(const fs::path& directory) {
    const fs::path path = directory / "config.json";
    if (!fs::exists(path)) {
        throw Error(
            ErrorCode::not_found,
            fmt::format("not a model directory, it has no config.json: {}", directory.string()));
    }
    try {
        const Json json = Json::parse(read_file(path));
        const std::string type = json.get_string("model_type");
        if (type != "gpt2" && type != "llama") {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("only gpt2 and llama models can be loaded, not '{}'", type));
        }
        const ModelConfig config = type == "gpt2" ? gpt2_config_of(json) : llama_config_of(json);
        spec::require_valid(config);
        return config;
    } catch (Error& error) {
        error.add_context("reading " + path.string());
        throw;
    }
}

template <class Real>
void read_weights(const fs::path& directory, ParameterSet<Real>& weights) {
    const SafetensorsFile file(directory / kWeightsFile);
    for (std::size_t p = 0; p < weights.table().size(); ++p) {
        const spec::Parameter& parameter = weights.table()[p];
        const auto* entry = find_parameter(file, parameter.name);
        if (entry == nullptr || entry->shape != parameter.file_shape()) {
            throw Error(
                ErrorCode::data_loss,
                fmt::format("the weights do not fit config.json: {} should have shape {}, "
                            "the file has {}",
                            parameter.name, tensor::to_string(parameter.file_shape()),
                            entry == nullptr ? "no such tensor" : tensor::to_string(entry->shape)));
        }
        const std::vector<float> values = file.read(*entry);
        const std::span<Real> into = weights.of(p);
        const auto rows = static_cast<std::size_t>(parameter.rows);
        const auto columns = static_cast<std::size_t>(parameter.columns);
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < columns; ++c) {
                const std::size_t at =
                    parameter.transposed_in_file ? c * rows + r : r * columns + c;
                into[r * columns + c] = static_cast<Real>(values[at]);
            }
        }
    }
}

template void write_model_directory(const fs::path&, const ModelConfig&, const ParameterSet<float>&,
                                    const ModelExtras&);
template void write_model_directory(const fs::path&, const ModelConfig&,
                                    const ParameterSet<double>&, const ModelExtras&);
template void read_weights(const fs::path&, ParameterSet<float>&);
template void read_weights(const fs::path&, ParameterSet<double>&);

}  // namespace gruca::model
