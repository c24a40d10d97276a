// spec/model_config.h
//
// The shape of a decoder and the list of its parameters: what a trainer allocates, what a
// checkpoint names, what an exported model holds. Names are those of Hugging Face's GPT-2 and
// Llama.
//
// The table states matrices as the trainer keeps them: [outputs, inputs] row by row. GPT-2 files
// hold their projections the other way round (Conv1D); `transposed_in_file` says which.
// Pure; thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace gruca::spec {

enum class Architecture { gpt2, llama };

const char* name(Architecture architecture);
Architecture architecture_from(std::string_view text);  // Throws invalid_argument.

struct ModelConfig {
    Architecture architecture = Architecture::gpt2;
    std::int64_t layers = 0;
    std::int64_t width = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  // Equal to heads for GPT-2.
    std::int64_t hidden = 0;    // Of the feed-forward part.
    std::int64_t context_length = 0;
    std::int64_t vocabulary_size = 0;
    bool tied_embeddings = true;  // The output projection is the token embedding.
    double rope_theta = 10000;    // Llama only.
    double norm_epsilon = 1e-5;

    std::int64_t head_size() const { return width / heads; }
    std::int64_t kv_width() const { return head_size() * kv_heads; }

    Json to_json() const;
    static ModelConfig from_json(const Json& json);

    friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// Throws one invalid_argument that lists every number that does not fit, with the nearest that do.
void require_valid(const ModelConfig& config);

struct Parameter {
    std::string name;       // "transformer.h.0.attn.c_attn.weight"
    std::int64_t rows = 1;  // Outputs; 1 for a vector.
    std::int64_t columns;   // Inputs, or the length of a vector.
    bool is_matrix;         // Matrices decay; vectors (norms, biases) do not.
    bool transposed_in_file = false;
    double init_deviation = 0;  // Of a normal distribution around init_mean.
    double init_mean = 0;

    std::int64_t count() const { return rows * columns; }
    // As a file holds it: {outputs, inputs}, {inputs, outputs} or {length}.
    std::vector<std::int64_t> file_shape() const;
};

// In a fixed order: embeddings, blocks from the first to the last, final norm, output projection.
std::vector<Parameter> parameter_table(const ModelConfig& config);

std::int64_t parameter_count(const ModelConfig& config);

}  // namespace gruca::spec
