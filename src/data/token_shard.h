// data/token_shard.h
//
// Token shards: `<name>.bin`, nothing but token ids, and `<name>.idx`, which says where each
// document begins. The format of Megatron-LM, both ways; docs/formats/token-shards.md.
//
// A writer leaves a complete pair or none: the .idx is published last and removed first. A reader
// believes nothing: sizes, magic, version, type and every bound are checked at opening, and what
// does not fit is data_loss with the name of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "data/mapped_file.h"

namespace gruca::data {

// Megatron's codes. Ids of a vocabulary below 65,500 words fit into the small one.
enum class TokenType : std::uint8_t { int32 = 4, uint16 = 8 };

TokenType token_type_for(std::int64_t vocabulary);
std::size_t bytes_per_token(TokenType type);

inline constexpr std::int64_t kSmallVocabularyMax = 65'499;
// Lengths are 32-bit in the format: no document has more tokens.
inline constexpr std::int64_t kDocumentTokensMax = 2'147'483'647;

// Owned by one thread. Holds twelve bytes for each document and one buffer.
class TokenShardWriter {
  public:
    // Writes `<prefix>.bin` and `<prefix>.idx`; the directory must exist. A pair that is there is
    // replaced at finish.
    TokenShardWriter(std::filesystem::path prefix, TokenType type);
    ~TokenShardWriter();  // Without finish nothing is left.
    TokenShardWriter(const TokenShardWriter&) = delete;
    TokenShardWriter& operator=(const TokenShardWriter&) = delete;

    // Throws invalid_argument for an id that the type cannot hold; it never wraps.
    void add_document(std::span<const std::int32_t> tokens);
    // Adds every document of a shard of the same type, as if they had been added one by one.
    void add_shard(const class TokenShard& shard);

    std::int64_t documents() const { return static_cast<std::int64_t>(lengths_.size()); }
    std::int64_t tokens() const { return tokens_; }

    void finish();  // Once. Both files are durable when this returns.

  private:
    void append(std::span<const std::byte> bytes);
    void flush();
    void write(std::span<const std::byte> bytes);
    void write_index();

    const std::filesystem::path prefix_;
    const TokenType type_;
    UniqueFd bin_;
    std::vector<std::byte> buffer_;
    std::vector<std::int32_t> lengths_;
    std::vector<std::int64_t> document_ends_;  // In sequences; more than one may be in a document.
    std::int64_t tokens_ = 0;
};

// Thread-safe.
class TokenShard {
  public:
    // `path` is the .bin, the .idx, or the two without their ending.
    explicit TokenShard(const std::filesystem::path& path);

    const std::filesystem::path& prefix() const { return prefix_; }
    TokenType type() const { return type_; }
    std::int64_t tokens() const { return tokens_; }
    // Megatron stores sequences and groups them into documents; in shards written here each
    // document is one sequence.
    std::int64_t sequences() const { return sequences_; }
    std::int64_t documents() const { return documents_; }
    std::int64_t document_end(std::int64_t document) const;  // The first sequence after it.
    std::int64_t length(std::int64_t sequence) const;        // In tokens.

    // Fills `into` with the tokens of `sequence` from `offset`; all of them must exist. An id that
    // is not below `vocabulary` throws invalid_argument with file, position, id and vocabulary.
    void read(std::int64_t sequence, std::int64_t offset, std::int64_t vocabulary,
              std::span<std::int32_t> into) const;

    // Of the file's name and its index: tells shards apart without reading the tokens.
    std::uint32_t checksum() const;

    // The bytes of one sequence as they are stored.
    std::span<const std::byte> raw(std::int64_t sequence) const;

  private:
    void check_index();
    void check_sequences();
    void check_documents();
    [[noreturn]] void refuse(std::string_view why) const;
    std::int64_t pointer(std::int64_t sequence) const;

    std::filesystem::path prefix_;
    MappedFile index_;
    MappedFile bin_;
    TokenType type_ = TokenType::uint16;
    std::int64_t sequences_ = 0;
    std::int64_t documents_ = 0;
    std::int64_t tokens_ = 0;
};

// The shards that `paths` name, in order: a file, a pair without its ending, or a directory, which
// stands for every shard directly in it, in byte order of their names. Throws not_found for a
// path, or a directory, without any.
std::vector<std::shared_ptr<const TokenShard>> open_shards(
    const std::vector<std::filesystem::path>& paths);

}  // namespace gruca::data
