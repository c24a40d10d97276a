// spec/model_config.h
//
// The shape of a decoder and the list of its parameters: what a trainer allocates, what a
// checkpoint names, what an exported model holds. Names are those of Hugging Face's models.
//
// Two architectures are computed. Llama's has relatives that differ from it by what a flag says:
//
//   llama     may have biases in its projections, and rotary positions stretched by frequency
//   mistral   attention reaches back sliding_window tokens
//   qwen2     biases on queries, keys and values; a window in the upper layers, if asked for
//   qwen3     an RMSNorm over each head of queries and keys; heads of a size of their own
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

// As config.json calls it: its `model_type`.
enum class Family { gpt2, llama, mistral, qwen2, qwen3 };

const char* name(Family family);
Family family_from(std::string_view text);  // Throws invalid_argument naming those there are.

// How rotary positions are stretched beyond the context a model was first trained with.
struct RopeScaling {
    enum class Kind {
        none,
        linear,  // Every angle is divided by the factor.
        llama3,  // Slow turns are divided, fast ones kept, those between blended.
    };
    Kind kind = Kind::none;
    double factor = 1;
    double low_frequency_factor = 1;
    double high_frequency_factor = 4;
    std::int64_t original_context_length = 8192;

    friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

struct ModelConfig {
    Family family = Family::gpt2;
    std::int64_t layers = 0;
    std::int64_t width = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  // Equal to heads for GPT-2.
    std::int64_t hidden = 0;    // Of the feed-forward part.
    std::int64_t context_length = 0;
    std::int64_t vocabulary_size = 0;
    bool tied_embeddings = true;  // The output projection is the token embedding.
    double norm_epsilon = 1e-5;

    // Llama and its relatives only.
    double rope_theta = 10000;
    RopeScaling rope_scaling = {};
    std::int64_t own_head_size = 0;   // 0: width / heads.
    bool qkv_bias = false;            // On queries, keys and values.
    bool output_bias = false;         // On attention's output projection.
    bool feed_forward_bias = false;   // On gate, up and down.
    bool head_norm = false;           // RMSNorm over each head of queries and keys.
    std::int64_t sliding_window = 0;  // A token sees so many, itself included. 0: all before it.
    std::int64_t first_windowed_layer = 0;

    bool is_gpt2() const { return family == Family::gpt2; }
    std::int64_t head_size() const { return own_head_size > 0 ? own_head_size : width / heads; }
    std::int64_t query_width() const { return head_size() * heads; }
    std::int64_t kv_width() const { return head_size() * kv_heads; }
    // How far back attention reaches in a layer; 0: to the beginning.
    std::int64_t window_of(std::int64_t layer) const {
        return layer >= first_windowed_layer ? sliding_window : 0;
    }

    // What a relative of Llama has beyond it is written only where it is there.
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
