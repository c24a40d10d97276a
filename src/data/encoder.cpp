#include "data/encoder.h"

#include "data/pieces.h"
#include "data/tokenizer.h"

namespace gruca::data {
namespace {

// Longer pieces are rare and rarely come back.
constexpr std::size_t kPieceBytesMax = 64;
// About 100 MB at most; then everything is forgotten.
constexpr std::size_t kPiecesMax = 1u << 20;

}  // namespace

void Encoder::append(std::string_view text, std::vector<std::int32_t>& ids) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = piece_end(text, begin);
        const std::string_view piece = text.substr(begin, end - begin);
        begin = end;
        if (const auto known = pieces_.find(piece); known != pieces_.end()) {
            const auto first = ids_.begin() + known->second.at;
            ids.insert(ids.end(), first, first + known->second.count);
            continue;
        }
        const std::size_t from = ids.size();
        tokenizer_.encode_piece(piece, ids);
        if (piece.size() > kPieceBytesMax) continue;
        if (pieces_.size() == kPiecesMax) {
            pieces_.clear();
            ids_.clear();
        }
        pieces_.emplace(std::string(piece),
                        Remembered{.at = static_cast<std::uint32_t>(ids_.size()),
                                   .count = static_cast<std::uint32_t>(ids.size() - from)});
        ids_.insert(ids_.end(), ids.begin() + static_cast<std::ptrdiff_t>(from), ids.end());
    }
}

}  // namespace gruca::data
