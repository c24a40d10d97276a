#include "net/chunked.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace gruca::net {
namespace {

std::optional<std::uint64_t> parse_size(std::string_view digits) {
    if (digits.empty() || digits.size() > 16) return std::nullopt;
    std::uint64_t size = 0;
    for (const char c : digits) {
        const bool decimal = c >= '0' && c <= '9';
        const char lower = static_cast<char>(c | 0x20);
        if (!decimal && (lower < 'a' || lower > 'f')) return std::nullopt;
        size = size * 16 + static_cast<std::uint64_t>(decimal ? c - '0' : lower - 'a' + 10);
    }
    if (size > kChunkBytesMax) return std::nullopt;
    return size;
}

bool is_printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) >= ' ' && c != 0x7f) || c == '\t';
    });
}

}  // namespace

ChunkedReader::What ChunkedReader::next(std::string_view& input) {
    switch (state_) {
        case State::size_line:
        case State::after_data:
            return take_size_line(input);
        case State::data:
            return take_data(input);
        case State::trailers:
            return take_trailers(input);
        case State::ended:
            return What::end;
        case State::malformed:
            break;
    }
    return What::malformed;
}

ChunkedReader::What ChunkedReader::fail(std::string why) {
    state_ = State::malformed;
    fault_ = std::move(why);
    return What::malformed;
}

bool ChunkedReader::take_line(std::string_view& input) {
    const std::size_t feed = input.find('\n');
    const std::string_view part = input.substr(0, feed);
    input.remove_prefix(feed == std::string_view::npos ? input.size() : feed + 1);
    framing_bytes_ += part.size() + 1;
    if (framing_bytes_ > kChunkFramingBytesMax + data_bytes_ / 16) {
        fail("the framing of the chunks outweighs their data");
        return false;
    }
    if (line_.size() + part.size() > kChunkLineBytesMax) {
        fail("a chunk's line is longer than " + std::to_string(kChunkLineBytesMax) + " bytes");
        return false;
    }
    line_ += part;
    if (feed == std::string_view::npos) return false;
    if (!line_.ends_with('\r')) {
        fail("a chunk's line must end with CRLF");
        return false;
    }
    line_.pop_back();
    if (is_printable(line_)) return true;
    fail("a chunk's line has an illegal character");
    return false;
}

ChunkedReader::What ChunkedReader::take_size_line(std::string_view& input) {
    if (state_ == State::after_data) {  // What follows a chunk's bytes is an empty line.
        if (!take_line(input)) return state_ == State::malformed ? What::malformed : What::more;
        if (!line_.empty()) return fail("a chunk is longer than its size");
        state_ = State::size_line;
    }
    if (!take_line(input)) return state_ == State::malformed ? What::malformed : What::more;
    const std::size_t mark = std::min(line_.find(';'), line_.size());
    const auto size = parse_size(std::string_view(line_).substr(0, mark));
    if (!size) return fail("a chunk's size must be a hexadecimal number");
    extension_ = mark < line_.size() ? line_.substr(mark + 1) : "";
    line_.clear();
    size_ = left_ = *size;
    state_ = *size == 0 ? State::trailers : State::data;
    return What::chunk;
}

ChunkedReader::What ChunkedReader::take_data(std::string_view& input) {
    if (input.empty()) return What::more;
    data_ = input.substr(0, std::min<std::uint64_t>(left_, input.size()));
    input.remove_prefix(data_.size());
    left_ -= data_.size();
    data_bytes_ += data_.size();
    if (left_ == 0) state_ = State::after_data;
    return What::data;
}

ChunkedReader::What ChunkedReader::take_trailers(std::string_view& input) {
    for (;;) {
        if (!take_line(input)) return state_ == State::malformed ? What::malformed : What::more;
        if (line_.empty()) break;
        const std::size_t colon = line_.find(':');
        const std::string_view name = std::string_view(line_).substr(0, colon);
        if (colon == std::string::npos || name.empty() ||
            name.find_first_of(" \t") != std::string_view::npos) {
            return fail("a trailer must be of the form name:value");
        }
        if (trailers_.fields().size() == kTrailersMax) return fail("too many trailers");
        trailers_.add(std::string(name), std::string(trim(line_.substr(colon + 1))));
        line_.clear();
    }
    state_ = State::ended;
    return What::end;
}

}  // namespace gruca::net
