#include "data/unicode.h"

#include <vector>

namespace gruca::data {
namespace {

constexpr char32_t kPoints = 0x110000;
constexpr char32_t kReplacement = 0xFFFD;

std::vector<CharacterClass> make_classes() {
    std::vector<CharacterClass> classes(kPoints, CharacterClass::other);
    const auto mark = [&](std::span<const CodePointRange> ranges, CharacterClass as) {
        for (const CodePointRange& range : ranges) {
            for (char32_t point = range.first; point <= range.last; ++point) classes[point] = as;
        }
    };
    mark(letter_ranges(), CharacterClass::letter);
    mark(number_ranges(), CharacterClass::number);
    mark(space_ranges(), CharacterClass::space);
    return classes;
}

}  // namespace

CharacterClass class_of(char32_t point) {
    static const std::vector<CharacterClass> classes = make_classes();
    return point < kPoints ? classes[point] : CharacterClass::other;
}

Character character_at(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) -> char32_t {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
    };
    const char32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const std::size_t length = lead < 0xC2   ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0) return {kReplacement, 1};
    char32_t point = lead & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {kReplacement, 1};
        point = point << 6 | (byte(i) & 0x3F);
    }
    const bool is_overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    const bool is_surrogate = point >= 0xD800 && point < 0xE000;
    if (is_overlong || is_surrogate || point >= kPoints) return {kReplacement, 1};
    return {point, length};
}

}  // namespace gruca::data
