// data/byte_alphabet.h
//
// GPT-2 writes a byte as a printable character: those of Latin-1 that print are themselves, the
// other 68 are U+0100 and up, in order. So a blank is U+0120. Pure; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gruca::data {

std::string spell_bytes(std::string_view bytes);
// Nothing when a character stands for no byte.
std::optional<std::string> read_spelled_bytes(std::string_view spelled);

// The 256 bytes in order of the characters that stand for them: the order of their token ids.
std::array<std::uint8_t, 256> bytes_in_alphabet_order();

}  // namespace gruca::data
