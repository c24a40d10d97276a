// data/encoder.h
//
// Encodes many texts with one tokenizer and remembers the pieces it has seen: most of any text are
// pieces that came before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gruca::data {

class Tokenizer;

// Hashes texts of any kind, so that a map of strings is searched without making one.
struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
        return std::hash<std::string_view>()(text);
    }
};

// Owned by one thread. `tokenizer` must outlive it.
class Encoder {
  public:
    explicit Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    // Appends the tokens of `text`, which is a text of its own: no piece reaches back before it.
    void append(std::string_view text, std::vector<std::int32_t>& ids);

  private:
    struct Remembered {
        std::uint32_t at;
        std::uint32_t count;
    };

    const Tokenizer& tokenizer_;
    std::unordered_map<std::string, Remembered, TextHash, std::equal_to<>> pieces_;
    std::vector<std::int32_t> ids_;  // Of all pieces remembered.
};

}  // namespace gruca::data
