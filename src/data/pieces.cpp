#include "data/pieces.h"

#include <array>

#include "data/unicode.h"

namespace gruca::data {
namespace {

// Classes of the 128 characters that most text is made of.
const std::array<CharacterClass, 128>& ascii_classes() {
    static const std::array<CharacterClass, 128> classes = [] {
        std::array<CharacterClass, 128> made{};
        for (char32_t point = 0; point < 128; ++point) made[point] = class_of(point);
        return made;
    }();
    return classes;
}

struct Classified {
    CharacterClass character_class;
    std::size_t bytes;
};

Classified classify(std::string_view text, std::size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) return {ascii_classes()[byte], 1};
    const Character character = character_at(text, at);
    return {class_of(character.point), character.bytes};
}

// The end of the run of one class that begins at `at`.
std::size_t run_end(std::string_view text, std::size_t at, CharacterClass of) {
    while (at < text.size()) {
        const Classified next = classify(text, at);
        if (next.character_class != of) break;
        at += next.bytes;
    }
    return at;
}

// The length of the English ending that begins with the apostrophe at `at`; 0 when there is none.
std::size_t contraction_bytes(std::string_view text, std::size_t at) {
    const std::string_view rest = text.substr(at + 1, 2);
    if (rest.empty()) return 0;
    if (std::string_view("stmd").find(rest[0]) != std::string_view::npos) return 2;
    return rest == "re" || rest == "ve" || rest == "ll" ? 3 : 0;
}

}  // namespace

std::size_t piece_end(std::string_view text, std::size_t begin) {
    if (text[begin] == '\'') {
        const std::size_t bytes = contraction_bytes(text, begin);
        if (bytes > 0) return begin + bytes;
    }
    // One blank may lead a run of anything but spaces.
    const std::size_t lead = text[begin] == ' ' && begin + 1 < text.size() ? 1 : 0;
    const Classified first = classify(text, begin + lead);
    if (first.character_class != CharacterClass::space) {
        return run_end(text, begin + lead + first.bytes, first.character_class);
    }
    // Spaces: all of them at the end of the text, else all but the last, which leads what follows.
    std::size_t at = begin, last = begin;
    while (at < text.size()) {
        const Classified next = classify(text, at);
        if (next.character_class != CharacterClass::space) break;
        last = at;
        at += next.bytes;
    }
    return at == text.size() || last == begin ? at : last;
}

}  // namespace gruca::data
