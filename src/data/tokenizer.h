// data/tokenizer.h
//
// Byte-level BPE as GPT-2 introduced it and Hugging Face's `tokenizers` keeps it in tokenizer.json:
// text is cut into pieces (data/pieces.h), a piece is a row of byte tokens, and merges join
// neighbours, always the one with the lowest rank, leftmost first.
//
// Any bytes can be encoded, and decoding gives them back exactly. The words of special tokens are
// ordinary text unless the caller asks otherwise: a document that mentions <|endoftext|> must not
// end there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/pair_table.h"

namespace gruca::data {

inline constexpr std::int64_t kVocabularyMax = 1'000'000;
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// A tokenizer as data. Ids index `words`; an id that has none, or is special, has an empty word.
struct TokenizerParts {
    struct Merge {
        std::int32_t left;
        std::int32_t right;
        std::int32_t result;
        friend bool operator==(const Merge&, const Merge&) = default;
    };

    std::vector<std::string> words;                      // The bytes of each token.
    std::map<std::int32_t, std::string> special_tokens;  // By id.
    std::vector<Merge> merges;                           // In order of rank.
    bool ignore_merges = false;  // A whole piece that is a word is that word, whatever the merges.
};

// tokenizer.json, read and written; docs/formats/tokenizer-json.md. What is read but not understood
// is refused by name with invalid_argument.
TokenizerParts parse_tokenizer_json(std::string_view text);
std::string write_tokenizer_json(const TokenizerParts& parts);

// Immutable; thread-safe.
class Tokenizer {
  public:
    // Throws invalid_argument when one of the 256 bytes has no token.
    explicit Tokenizer(TokenizerParts parts);
    static Tokenizer load(const std::filesystem::path& tokenizer_json);

    // One more than the highest id.
    std::int64_t vocabulary() const { return static_cast<std::int64_t>(parts_.words.size()); }
    std::optional<std::int32_t> special_token(std::string_view content) const;
    // The id of <|endoftext|>; throws invalid_argument when there is none.
    std::int32_t end_of_text() const;

    // For single texts; for many, an Encoder remembers what it has seen.
    std::vector<std::int32_t> encode(std::string_view text) const;
    // Also finds special tokens in `text`, the leftmost first, of those the longest.
    std::vector<std::int32_t> encode_with_special_tokens(std::string_view text) const;

    // Special tokens become their content, or nothing. An id without a token throws
    // invalid_argument. The bytes need not be UTF-8: a token may end inside a character.
    std::string decode(std::span<const std::int32_t> ids, bool keep_special_tokens = true) const;

    const TokenizerParts& parts() const { return parts_; }

    // Appends the tokens of one piece.
    void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const;

  private:
    void merge_short(std::vector<std::int32_t>& ids, std::size_t from) const;
    void merge_long(std::vector<std::int32_t>& ids, std::size_t from) const;

    TokenizerParts parts_;
    std::int32_t byte_tokens_[256];
    PairTable merges_;
    std::map<std::string, std::int32_t, std::less<>> whole_words_;  // Only with ignore_merges.
};

}  // namespace gruca::data
