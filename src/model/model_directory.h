// model/model_directory.h
//
// A trained model as Hugging Face's `transformers` loads it: a directory with config.json,
// generation_config.json, model.safetensors (in pieces when it is large), and the tokenizer's
// tokenizer.json beside a tokenizer_config.json. Both directions, every family.
// docs/formats/model-directory.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "model/parameters.h"
#include "model/weight_files.h"

namespace gruca::model {

struct ModelExtras {
    std::string tokenizer_json = {};  // Copied as it is; empty: none.
    std::optional<std::int64_t> end_of_text = {};
    std::uint64_t shard_bytes_max = kShardBytesMax;  // Of one file of weights.
};

// Creates the directory if need be and replaces the files in it; the weights come last.
template <class Real>
void write_model_directory(const std::filesystem::path& directory, const spec::ModelConfig& config,
                           const ParameterSet<Real>& weights, const ModelExtras& extras);

// Throws invalid_argument when config.json asks for something these decoders do not compute.
spec::ModelConfig read_model_config(const std::filesystem::path& directory);

// Every parameter must be in the file with its shape; throws data_loss and names the one that is
// not.
template <class Real>
void read_weights(const std::filesystem::path& directory, ParameterSet<Real>& weights);

}  // namespace gruca::model
