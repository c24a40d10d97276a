// data/pieces.h
//
// The first step of GPT-2's tokenizer: text is cut into pieces, and no token spans two of them.
// Written by hand for the expression
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace gruca::data {

// Where the piece that begins at `begin` < text.size() ends. `begin` must be the start of the text
// or the end of a piece.
std::size_t piece_end(std::string_view text, std::size_t begin);

}  // namespace gruca::data
