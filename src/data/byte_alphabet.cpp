#include "data/byte_alphabet.h"

#include <algorithm>
#include <numeric>

#include "data/unicode.h"

namespace gruca::data {
namespace {

struct Alphabet {
    std::array<char32_t, 256> point_of_byte;
    std::array<int, 0x144> byte_of_point;  // -1: none.
};

constexpr Alphabet make_alphabet() {
    Alphabet made{};
    for (int& byte : made.byte_of_point) byte = -1;
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        const char32_t point = prints ? static_cast<char32_t>(byte) : next++;
        made.point_of_byte[static_cast<std::size_t>(byte)] = point;
        made.byte_of_point[point] = byte;
    }
    return made;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string spell_bytes(std::string_view bytes) {
    std::string spelled;
    for (const char c : bytes) {
        const char32_t point = kAlphabet.point_of_byte[static_cast<unsigned char>(c)];
        if (point < 0x80) {
            spelled += static_cast<char>(point);
        } else {
            spelled += static_cast<char>(0xC0 | point >> 6);
            spelled += static_cast<char>(0x80 | (point & 0x3F));
        }
    }
    return spelled;
}

std::optional<std::string> read_spelled_bytes(std::string_view spelled) {
    std::string bytes;
    for (std::size_t at = 0; at < spelled.size();) {
        const Character character = character_at(spelled, at);
        at += character.bytes;
        if (character.point >= kAlphabet.byte_of_point.size()) return std::nullopt;
        const int byte = kAlphabet.byte_of_point[character.point];
        if (byte < 0) return std::nullopt;
        bytes += static_cast<char>(byte);
    }
    return bytes;
}

std::array<std::uint8_t, 256> bytes_in_alphabet_order() {
    std::array<std::uint8_t, 256> bytes;
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    std::sort(bytes.begin(), bytes.end(), [](std::uint8_t a, std::uint8_t b) {
        return kAlphabet.point_of_byte[a] < kAlphabet.point_of_byte[b];
    });
    return bytes;
}

}  // namespace gruca::data
