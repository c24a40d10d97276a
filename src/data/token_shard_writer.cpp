#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "data/token_shard.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1u << 20;

fs::path path_of(const fs::path& prefix, const char* ending) {
    return prefix.string() + ending;
}

template <class Number>
void append_number(std::string& text, Number number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

TokenType token_type_for(std::int64_t vocabulary) {
    return vocabulary <= kSmallVocabularyMax ? TokenType::uint16 : TokenType::int32;
}

std::size_t bytes_per_token(TokenType type) {
    return type == TokenType::uint16 ? 2 : 4;
}

TokenShardWriter::TokenShardWriter(fs::path prefix, TokenType type)
    : prefix_(std::move(prefix)),
      type_(type),
      bin_(open_file(path_of(prefix_, ".bin.partial"), O_WRONLY | O_CREAT | O_TRUNC)) {
    buffer_.reserve(kBufferBytes);
}

TokenShardWriter::~TokenShardWriter() {
    if (bin_.is_open()) ::unlink(path_of(prefix_, ".bin.partial").c_str());
}

void TokenShardWriter::add_document(std::span<const std::int32_t> tokens) {
    if (tokens.size() > static_cast<std::size_t>(kDocumentTokensMax)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("a document has {} tokens, more than a shard can index: {}",
                                tokens.size(), kDocumentTokensMax));
    }
    if (type_ == TokenType::int32) {
        append(std::as_bytes(tokens));
    } else {
        for (const std::int32_t token : tokens) {
            const auto small = static_cast<std::uint16_t>(token);
            if (small != token) {
                throw Error(ErrorCode::invalid_argument,
                            fmt::format("token {} does not fit a shard of 16-bit ids", token));
            }
            append(std::as_bytes(std::span(&small, 1)));
        }
    }
    lengths_.push_back(static_cast<std::int32_t>(tokens.size()));
    document_ends_.push_back(static_cast<std::int64_t>(lengths_.size()));
    tokens_ += static_cast<std::int64_t>(tokens.size());
}

void TokenShardWriter::add_shard(const TokenShard& shard) {
    CHECK(shard.type() == type_, "shards of different token types are not merged");
    const auto before = static_cast<std::int64_t>(lengths_.size());
    for (std::int64_t i = 0; i < shard.sequences(); ++i) {
        append(shard.raw(i));
        lengths_.push_back(static_cast<std::int32_t>(shard.length(i)));
    }
    for (std::int64_t i = 0; i < shard.documents(); ++i) {
        document_ends_.push_back(before + shard.document_end(i));
    }
    tokens_ += shard.tokens();
}

void TokenShardWriter::append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kBufferBytes) flush();
    if (bytes.size() > kBufferBytes) {
        write(bytes);
    } else {
        buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    }
}

void TokenShardWriter::flush() {
    write(buffer_);
    buffer_.clear();
}

void TokenShardWriter::write(std::span<const std::byte> bytes) {
    try {
        write_all(bin_.get(), bytes);
    } catch (Error& error) {
        error.add_context("writing " + path_of(prefix_, ".bin").string());
        throw;
    }
}

void TokenShardWriter::write_index() {
    std::string index("MMIDIDX\0\0", 9);
    append_number(index, std::uint64_t{1});
    append_number(index, static_cast<std::uint8_t>(type_));
    append_number(index, static_cast<std::uint64_t>(lengths_.size()));
    append_number(index, static_cast<std::uint64_t>(document_ends_.size() + 1));
    for (const std::int32_t length : lengths_) append_number(index, length);
    std::int64_t pointer = 0;
    for (const std::int32_t length : lengths_) {
        append_number(index, pointer);
        pointer += std::int64_t{length} * static_cast<std::int64_t>(bytes_per_token(type_));
    }
    append_number(index, std::int64_t{0});
    for (const std::int64_t end : document_ends_) append_number(index, end);
    write_file_atomic(path_of(prefix_, ".idx"), index);
}

void TokenShardWriter::finish() {
    CHECK(bin_.is_open(), "finish called twice");
    flush();
    if (::fsync(bin_.get()) != 0) throw_errno("cannot sync " + path_of(prefix_, ".bin").string());
    // An old index must never be found beside a new .bin.
    fs::remove(path_of(prefix_, ".idx"));
    fs::rename(path_of(prefix_, ".bin.partial"), path_of(prefix_, ".bin"));
    bin_.reset();
    write_index();
}

}  // namespace gruca::data
