#include "model/model_directory.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/config_json.h"
#include "model/weight_files.h"

namespace gruca::model {
namespace {

namespace fs = std::filesystem;
using spec::ModelConfig;

Json end_of_text_json(const ModelExtras& extras) {
    return extras.end_of_text ? Json(*extras.end_of_text) : Json();
}

Json whole_config_json(const ModelConfig& c, const ModelExtras& extras) {
    Json json = config_json(c);
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

// Under which name the weights hold a parameter: the original GPT-2 files leave out the first part.
std::string name_in(WeightFiles& files, const std::string& name) {
    constexpr std::string_view kPrefix = "transformer.";
    if (!name.starts_with(kPrefix) || files.shape_of(name)) return name;
    return name.substr(kPrefix.size());
}

}  // namespace

template <class Real>
void write_model_directory(const fs::path& directory, const ModelConfig& config,
                           const ParameterSet<Real>& weights, const ModelExtras& extras) {
    fs::create_directories(directory);
    write_file_atomic(directory / "config.json", whole_config_json(config, extras).dump(2) + "\n");
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
    write_weight_files(directory, tensors, extras.shard_bytes_max);
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
        const ModelConfig config = config_of_json(json);
        spec::require_valid(config);
        return config;
    } catch (Error& error) {
        error.add_context("reading " + path.string());
        throw;
    }
}

template <class Real>
void read_weights(const fs::path& directory, ParameterSet<Real>& weights) {
    WeightFiles files(directory);
    for (std::size_t p = 0; p < weights.table().size(); ++p) {
        const spec::Parameter& parameter = weights.table()[p];
        const std::string name = name_in(files, parameter.name);
        const std::optional<tensor::Shape> shape = files.shape_of(name);
        if (shape != parameter.file_shape()) {
            throw Error(ErrorCode::data_loss,
                        fmt::format("the weights do not fit config.json: {} should have shape {}, "
                                    "the file has {}",
                                    parameter.name, tensor::to_string(parameter.file_shape()),
                                    shape ? tensor::to_string(*shape) : "no such tensor"));
        }
        const std::vector<float> values = files.read(name);
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
