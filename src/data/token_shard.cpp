#include "data/token_shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr std::uint64_t kVersion = 1;

// Where things stand in the .idx; nothing in it is aligned.
constexpr std::size_t kVersionAt = 9;
constexpr std::size_t kTypeAt = 17;
constexpr std::size_t kSequencesAt = 18;
constexpr std::size_t kDocumentsAt = 26;
constexpr std::size_t kLengthsAt = 34;

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
    Number number;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return number;
}

fs::path with_ending(const fs::path& prefix, const char* ending) {
    return prefix.string() + ending;
}

fs::path without_ending(const fs::path& path) {
    const std::string text = path.string();
    const bool has_one = text.ends_with(".bin") || text.ends_with(".idx");
    return has_one ? fs::path(text.substr(0, text.size() - 4)) : path;
}

}  // namespace

TokenShard::TokenShard(const fs::path& path)
    : prefix_(without_ending(path)),
      index_(with_ending(prefix_, ".idx")),
      bin_(with_ending(prefix_, ".bin")) {
    check_index();
    check_sequences();
    check_documents();
}

void TokenShard::refuse(std::string_view why) const {
    throw Error(ErrorCode::data_loss, fmt::format("{}: {}.idx", why, prefix_.string()));
}

void TokenShard::check_index() {
    const std::span<const std::byte> bytes = index_.bytes();
    if (bytes.size() < kLengthsAt || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
        refuse("not the index of a token shard");
    }
    const auto version = number_at<std::uint64_t>(bytes, kVersionAt);
    if (version != kVersion) {
        refuse(fmt::format("index version {} is not known, only {}", version, kVersion));
    }
    type_ = static_cast<TokenType>(bytes[kTypeAt]);
    if (type_ != TokenType::int32 && type_ != TokenType::uint16) {
        refuse(fmt::format("token type {} is not read, only 4 (int32) and 8 (uint16)",
                           static_cast<int>(bytes[kTypeAt])));
    }
    const auto sequences = number_at<std::uint64_t>(bytes, kSequencesAt);
    const auto documents = number_at<std::uint64_t>(bytes, kDocumentsAt);
    const std::size_t room = bytes.size() - kLengthsAt;
    if (sequences > room / 12 || documents > room / 8 || documents == 0 ||
        sequences * 12 + documents * 8 != room) {
        refuse(fmt::format("size of {} bytes does not fit {} sequences and {} document bounds",
                           bytes.size(), sequences, documents));
    }
    sequences_ = static_cast<std::int64_t>(sequences);
    documents_ = static_cast<std::int64_t>(documents) - 1;
}

void TokenShard::check_sequences() {
    const auto bin_bytes = static_cast<std::int64_t>(bin_.bytes().size());
    const auto token_bytes = static_cast<std::int64_t>(bytes_per_token(type_));
    for (std::int64_t i = 0; i < sequences_; ++i) {
        const std::int64_t tokens = length(i), at = pointer(i);
        if (tokens < 0 || at < 0 || at % token_bytes != 0 || at > bin_bytes ||
            tokens > (bin_bytes - at) / token_bytes) {
            refuse(
                fmt::format("sequence {} of {} tokens at byte {} is outside the .bin of {} bytes",
                            i, tokens, at, bin_bytes));
        }
        tokens_ += tokens;
    }
}

void TokenShard::check_documents() {
    std::int64_t last = 0;
    for (std::int64_t i = -1; i < documents_; ++i) {
        const std::int64_t end = document_end(i);
        if (end < last || end > sequences_ || (i == -1 && end != 0)) {
            refuse(fmt::format("bound {} of document {} is out of order", end, i + 1));
        }
        last = end;
    }
    if (last != sequences_) refuse("the last document does not end with the last sequence");
}

std::int64_t TokenShard::length(std::int64_t sequence) const {
    DCHECK(sequence >= 0 && sequence < sequences_, "sequence {}", sequence);
    return number_at<std::int32_t>(index_.bytes(),
                                   kLengthsAt + 4 * static_cast<std::size_t>(sequence));
}

std::int64_t TokenShard::pointer(std::int64_t sequence) const {
    const std::size_t start = kLengthsAt + 4 * static_cast<std::size_t>(sequences_);
    return number_at<std::int64_t>(index_.bytes(), start + 8 * static_cast<std::size_t>(sequence));
}

std::int64_t TokenShard::document_end(std::int64_t document) const {
    const std::size_t start = kLengthsAt + 12 * static_cast<std::size_t>(sequences_);
    return number_at<std::int64_t>(index_.bytes(),
                                   start + 8 * static_cast<std::size_t>(document + 1));
}

std::uint32_t TokenShard::checksum() const {
    const std::string name = prefix_.filename().string();
    return crc32c(index_.bytes(), crc32c(bytes_of(name)));
}

std::span<const std::byte> TokenShard::raw(std::int64_t sequence) const {
    CHECK(sequence >= 0 && sequence < sequences_, "sequence {} of {}", sequence, sequences_);
    return bin_.bytes().subspan(
        static_cast<std::size_t>(pointer(sequence)),
        static_cast<std::size_t>(length(sequence)) * bytes_per_token(type_));
}

void TokenShard::read(std::int64_t sequence, std::int64_t offset, std::int64_t vocabulary,
                      std::span<std::int32_t> into) const {
    const auto count = static_cast<std::int64_t>(into.size());
    CHECK(offset >= 0 && count <= length(sequence) - offset, "tokens {}+{} of sequence {}", offset,
          count, sequence);
    const std::size_t size = bytes_per_token(type_);
    const std::byte* from = raw(sequence).data() + static_cast<std::size_t>(offset) * size;
    for (std::size_t i = 0; i < into.size(); ++i, from += size) {
        std::uint16_t small = 0;
        if (type_ == TokenType::uint16) {
            std::memcpy(&small, from, sizeof small);
            into[i] = small;
        } else {
            std::memcpy(&into[i], from, sizeof into[i]);
        }
        if (into[i] < 0 || into[i] >= vocabulary) {
            const std::int64_t at = pointer(sequence) / static_cast<std::int64_t>(size) + offset;
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("token {} of {}.bin has the id {}, but the vocabulary has only "
                                    "{} words; was it made with another tokenizer?",
                                    at + static_cast<std::int64_t>(i), prefix_.string(), into[i],
                                    vocabulary));
        }
    }
}

std::vector<std::shared_ptr<const TokenShard>> open_shards(const std::vector<fs::path>& paths) {
    std::vector<std::shared_ptr<const TokenShard>> shards;
    for (const fs::path& path : paths) {
        if (!fs::is_directory(path)) {
            shards.push_back(std::make_shared<const TokenShard>(path));
            continue;
        }
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(path)) {
            if (entry.path().extension() == ".idx") names.push_back(entry.path().string());
        }
        if (names.empty()) {
            throw Error(ErrorCode::not_found,
                        "no token shard (.bin and .idx) in the directory: " + path.string());
        }
        std::sort(names.begin(), names.end());
        for (const std::string& name : names) {
            shards.push_back(std::make_shared<const TokenShard>(name));
        }
    }
    if (shards.empty()) throw Error(ErrorCode::not_found, "no token shard is named");
    return shards;
}

}  // namespace gruca::data
