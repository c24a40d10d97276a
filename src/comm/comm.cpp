#include "comm/comm.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/boundary.h"
#include "base/error.h"

namespace gruca::comm {
namespace {

void require_gatherable(std::uint64_t bytes) {
    if (bytes <= kGatherTextBytesMax) return;
    throw Error(ErrorCode::invalid_argument,
                "text is too long to be exchanged between ranks, bytes: " + std::to_string(bytes));
}

}  // namespace

std::vector<std::string> all_gather_text(Comm& comm, std::string_view mine) {
    const auto count = static_cast<std::size_t>(comm.size());
    const std::uint64_t my_bytes = mine.size();
    std::vector<std::uint64_t> sizes(count);
    comm.all_gather(std::as_bytes(std::span(&my_bytes, 1)),
                    std::as_writable_bytes(std::span(sizes)));
    const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
    require_gatherable(longest);

    std::vector<std::byte> padded(longest);
    if (!mine.empty()) std::memcpy(padded.data(), mine.data(), mine.size());
    std::vector<std::byte> all(longest * count);
    comm.all_gather(padded, all);

    std::vector<std::string> texts;
    for (std::size_t rank = 0; rank < count; ++rank) {
        const auto* begin = reinterpret_cast<const char*>(all.data()) + rank * longest;
        texts.emplace_back(begin, sizes[rank]);
    }
    return texts;
}

std::vector<std::string> all_gather_outcome(Comm& comm, const std::function<std::string()>& work) {
    // First a byte that is the error's code, or kDone; then a text.
    constexpr char kDone = '\x7f';
    std::string mine(1, kDone);
    if (const auto error = run_guarded([&] { mine += work(); })) {
        mine = static_cast<char>(error->code()) + error->message();
    }
    std::vector<std::string> all = all_gather_text(comm, mine);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank][0] == kDone) continue;
        throw Error(static_cast<ErrorCode>(all[rank][0]),
                    "rank " + std::to_string(rank) + ": " + all[rank].substr(1));
    }
    for (std::string& text : all) text.erase(0, 1);
    return all;
}

}  // namespace gruca::comm
