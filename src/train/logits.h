// train/logits.h
//
// What a model thinks of every next token, as numbers: for comparing it with another program's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string_view>
#include <vector>

namespace gruca::train {

// "1,2,3"; throws invalid_argument for anything else.
std::vector<std::int32_t> parse_tokens(std::string_view text);

// Prints {"logits": [[...], ...]}: for each of the tokens, the scores of all words to follow it.
// Computed by the decoder that trains. Throws invalid_argument for tokens the model does not have,
// or more of them than it can see.
void print_logits(const std::filesystem::path& model, const std::vector<std::int32_t>& tokens,
                  std::ostream& out);

}  // namespace gruca::train
