// base/text.h
//
// Small, pure functions on text and its encodings that more than one room needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gruca {

std::vector<std::string> split(std::string_view text, char separator);  // "a,,b" has three parts.
std::string_view trim(std::string_view text);                           // Blanks, tabs, CR, LF.
std::string to_lower(std::string_view ascii);

std::string hex(std::span<const std::byte> bytes);  // Lower case.
std::string base64(std::span<const std::byte> bytes);
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

std::span<const std::byte> bytes_of(std::string_view text);
std::string_view text_of(std::span<const std::byte> bytes);

bool is_utf8(std::string_view text);
// Replaces every byte that is not part of a well-formed sequence by U+FFFD.
std::string repair_utf8(std::string_view text);

// The candidate with the smallest edit distance, if that is small enough to be a likely typo.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

std::string human_bytes(std::uint64_t bytes);  // "1.5 MiB"
std::string human_seconds(double seconds);     // "1 h 02 min", "3 min 05 s", "12 s"

// Reads a whole decimal number, or nothing when `text` is anything else.
std::optional<long long> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

}  // namespace gruca
