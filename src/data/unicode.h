// data/unicode.h
//
// Unicode as tokenizers see it: four classes of characters, from Unicode 16.0, and UTF-8 read one
// character at a time. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gruca::data {

enum class CharacterClass : std::uint8_t { other, letter, number, space };

CharacterClass class_of(char32_t point);

struct Character {
    char32_t point = 0;
    std::size_t bytes = 0;
};

// The character at `at` < text.size(). A byte that begins no well-formed one is a character of its
// own, U+FFFD.
Character character_at(std::string_view text, std::size_t at);

struct CodePointRange {
    char32_t first;
    char32_t last;
};

// In rising order: \p{L}, \p{N} and \s.
std::span<const CodePointRange> letter_ranges();
std::span<const CodePointRange> number_ranges();
std::span<const CodePointRange> space_ranges();

}  // namespace gruca::data
