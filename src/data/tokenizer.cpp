#include "data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "base/file.h"
#include "data/encoder.h"
#include "data/pieces.h"

namespace gruca::data {
namespace {

constexpr std::uint64_t kTokenizerBytesMax = 256u << 20;
// Up to here the best pair is found by looking at all of them; longer pieces keep a heap.
constexpr std::size_t kShortPiece = 32;

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts)
    : parts_(std::move(parts)), merges_(parts_.merges.size()) {
    std::fill(std::begin(byte_tokens_), std::end(byte_tokens_), -1);
    for (std::size_t id = 0; id < parts_.words.size(); ++id) {
        const std::string& word = parts_.words[id];
        if (word.size() == 1) {
            byte_tokens_[static_cast<unsigned char>(word[0])] = static_cast<std::int32_t>(id);
        }
        if (parts_.ignore_merges && !word.empty()) {
            whole_words_.emplace(word, static_cast<std::int32_t>(id));
        }
    }
    for (int byte = 0; byte < 256; ++byte) {
        if (byte_tokens_[byte] >= 0) continue;
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the tokenizer has no token for the byte 0x{:02X}, so it cannot "
                                "keep every text",
                                byte));
    }
    for (std::size_t rank = 0; rank < parts_.merges.size(); ++rank) {
        const TokenizerParts::Merge& merge = parts_.merges[rank];
        merges_.set(merge.left, merge.right,
                    {.rank = static_cast<std::int32_t>(rank), .result = merge.result});
    }
}

Tokenizer Tokenizer::load(const std::filesystem::path& tokenizer_json) {
    try {
        return Tokenizer(parse_tokenizer_json(read_file(tokenizer_json, kTokenizerBytesMax)));
    } catch (Error& error) {
        error.add_context("reading " + tokenizer_json.string());
        throw;
    }
}

std::optional<std::int32_t> Tokenizer::special_token(std::string_view content) const {
    for (const auto& [id, special] : parts_.special_tokens) {
        if (special == content) return id;
    }
    return std::nullopt;
}

std::int32_t Tokenizer::end_of_text() const {
    const std::optional<std::int32_t> id = special_token(kEndOfText);
    if (!id) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the tokenizer has no special token {}, which ends a document",
                                kEndOfText));
    }
    return *id;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    Encoder(*this).append(text, ids);
    return ids;
}

std::vector<std::int32_t> Tokenizer::encode_with_special_tokens(std::string_view text) const {
    std::vector<std::int32_t> ids;
    Encoder encoder(*this);
    while (!text.empty()) {
        std::size_t first = std::string_view::npos, length = 0;
        std::int32_t found = 0;
        for (const auto& [id, content] : parts_.special_tokens) {
            const std::size_t at = text.find(content);
            if (at == std::string_view::npos || at > first) continue;
            if (at == first && content.size() <= length) continue;
            first = at;
            length = content.size();
            found = id;
        }
        encoder.append(text.substr(0, first), ids);
        if (first == std::string_view::npos) break;
        ids.push_back(found);
        text.remove_prefix(first + length);
    }
    return ids;
}

void Tokenizer::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (parts_.ignore_merges) {
        const auto word = whole_words_.find(piece);
        if (word != whole_words_.end()) {
            ids.push_back(word->second);
            return;
        }
    }
    const std::size_t from = ids.size();
    for (const char c : piece) ids.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
    if (piece.size() <= kShortPiece) {
        merge_short(ids, from);
    } else {
        merge_long(ids, from);
    }
}

void Tokenizer::merge_short(std::vector<std::int32_t>& ids, std::size_t from) const {
    for (;;) {
        RankedMerge best;
        std::size_t at = 0;
        for (std::size_t i = from; i + 1 < ids.size(); ++i) {
            const RankedMerge merge = merges_.find(ids[i], ids[i + 1]);
            if (merge.rank >= best.rank) continue;
            best = merge;
            at = i;
        }
        if (best.rank == RankedMerge::kNone) return;
        ids[at] = best.result;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
}

// The same result in n log n: tokens in a doubly linked list, possible merges in a heap.
void Tokenizer::merge_long(std::vector<std::int32_t>& ids, std::size_t from) const {
    struct Node {
        std::int32_t id;
        std::size_t previous, next;
    };
    struct Candidate {
        RankedMerge merge;
        std::size_t at;
        std::int32_t left, right;
        bool operator<(const Candidate& other) const {
            return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : at > other.at;
        }
    };
    constexpr std::int32_t kGone = -1;
    const std::size_t end = ids.size() - from;
    std::vector<Node> nodes(end);
    for (std::size_t i = 0; i < end; ++i) nodes[i] = {ids[from + i], i - 1, i + 1};
    std::priority_queue<Candidate> candidates;
    const auto consider = [&](std::size_t at) {
        if (at >= end || nodes[at].next >= end) return;
        const std::int32_t left = nodes[at].id, right = nodes[nodes[at].next].id;
        const RankedMerge merge = merges_.find(left, right);
        if (merge.rank != RankedMerge::kNone) candidates.push({merge, at, left, right});
    };
    for (std::size_t i = 0; i + 1 < end; ++i) consider(i);
    while (!candidates.empty()) {
        const Candidate best = candidates.top();
        candidates.pop();
        Node& node = nodes[best.at];
        const std::size_t right = node.next;
        if (node.id != best.left || right >= end || nodes[right].id != best.right) continue;
        node.id = best.merge.result;
        node.next = nodes[right].next;
        nodes[right].id = kGone;
        if (node.next < end) nodes[node.next].previous = best.at;
        consider(node.previous);
        consider(best.at);
    }
    ids.resize(from);
    for (std::size_t i = 0; i < end; i = nodes[i].next) ids.push_back(nodes[i].id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool keep_special_tokens) const {
    std::string text;
    for (const std::int32_t id : ids) {
        if (const auto special = parts_.special_tokens.find(id);
            special != parts_.special_tokens.end()) {
            if (keep_special_tokens) text += special->second;
            continue;
        }
        if (id < 0 || id >= vocabulary() || parts_.words[static_cast<std::size_t>(id)].empty()) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("no token has the id {}; the vocabulary has {} words", id,
                                    vocabulary()));
        }
        text += parts_.words[static_cast<std::size_t>(id)];
    }
    return text;
}

}  // namespace gruca::data
