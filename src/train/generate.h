// train/generate.h
//
// Continues a text with a trained model, token by token, as it is chosen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>

namespace gruca::train {

struct GenerateOptions {
    std::filesystem::path model;  // A model directory with its tokenizer.json.
    std::string prompt;
    std::int64_t tokens = 100;  // At most; an end-of-text token ends earlier.
    double temperature = 0.8;
    std::int64_t top_k = 40;
    std::int64_t seed = 1;
    std::int64_t count = 1;  // Continuations, each with a chance of its own.
};

// Prints the prompt and its continuation; several are separated by a line. The same options and
// model give the same text.
void generate(const GenerateOptions& options, std::ostream& out);

}  // namespace gruca::train
