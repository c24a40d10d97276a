#include "service/telemetry/log_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/text.h"

namespace gruca::service {
namespace {

constexpr std::size_t kWindowBytes = 64u << 10;
constexpr std::size_t kRecordsInWindow = 256;
constexpr std::size_t kFirstLookBytes = 16u << 10;  // For the end of a line; then twice as far.

std::uint64_t open_if_there(const std::filesystem::path& path, UniqueFd& fd) {
    fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.is_open() && errno == ENOENT) return 0;
    struct stat facts = {};
    if (!fd.is_open() || ::fstat(fd.get(), &facts) != 0)
        throw_errno("cannot open " + path.string());
    return static_cast<std::uint64_t>(facts.st_size);
}

std::string read_at(int fd, std::uint64_t offset, std::size_t bytes) {
    std::string into(bytes, '\0');
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t got =
            ::pread(fd, into.data() + done, bytes - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno("cannot read a log");
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    into.resize(done);
    return into;
}

bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}

// Where to cut a line that is too long: not inside a character, if it has any.
std::size_t cut_point(std::string_view text) {
    std::size_t cut = kEventBytesMax;
    while (cut > kEventBytesMax - 3 && continues_character(text[cut])) --cut;
    return continues_character(text[cut]) ? kEventBytesMax : cut;
}

}  // namespace

LogReader::LogReader(const LogFiles& files, bool complete)
    : complete_(complete), quota_(files.quota) {
    // The index is written first, so asked for last it covers every byte.
    size_ = open_if_there(files.bytes, bytes_);
    gap_ = gap_of(quota_, size_);
    records_ = open_if_there(files.index, index_) / kLogIndexRecordBytes;
}

std::string_view LogReader::peek(std::uint64_t from, std::size_t bytes) {
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size_ - from));
    if (from < window_at_ || from + bytes > window_at_ + window_.size()) {
        const std::uint64_t wanted = std::max(bytes, kWindowBytes);
        window_at_ = from;
        window_ =
            read_at(bytes_.get(), from, static_cast<std::size_t>(std::min(wanted, size_ - from)));
    }
    const std::string_view window = window_;
    return window.substr(static_cast<std::size_t>(from - window_at_), bytes);
}

std::optional<LogEvent> LogReader::next(std::uint64_t from) {
    const std::optional<LogPlace> found = find_event(from);
    if (!found) return std::nullopt;
    return event_at(*found);
}

std::optional<LogPlace> LogReader::next_place(std::uint64_t from) {
    const std::optional<LogPlace> found = find_event(from);
    drop_long_window();
    return found;
}

std::optional<LogPlace> LogReader::find_event(std::uint64_t from) {
    std::size_t looked_at = 0;
    while (from < size_) {
        if (gap_.holds(from)) return place(from, 0, gap_.end);
        const bool before_gap = gap_.begin < gap_.end && from < gap_.begin;
        const std::uint64_t border = before_gap ? gap_.begin : size_;
        const bool ends_there = before_gap || complete_;

        const std::size_t wanted =
            std::min(std::max(kFirstLookBytes, 2 * looked_at), kEventBytesMax + 2);
        const std::string_view text =
            peek(from, static_cast<std::size_t>(std::min<std::uint64_t>(wanted, border - from)));
        const bool at_end = from + text.size() == border;
        const std::size_t found = text.find_first_of("\r\n", looked_at);
        if (found > kEventBytesMax && text.size() > kEventBytesMax) {
            const std::size_t cut = cut_point(text);
            return place(from, cut, from + cut);
        }
        if (found == std::string_view::npos) {
            if (at_end && !ends_there) return std::nullopt;
            if (at_end) return place(from, text.size(), border);
            looked_at = text.size();
            continue;
        }
        const bool last_byte = found + 1 == text.size();
        if (text[found] == '\n') return place(from, found, from + found + 1);
        if (last_byte && !at_end) {
            looked_at = found;
            continue;
        }
        if (last_byte && !ends_there) return std::nullopt;  // Perhaps the first half of "\r\n".
        if (!last_byte && text[found + 1] == '\n') return place(from, found, from + found + 2);
        if (found > 0) return place(from, found, from + found + 1);
        // Returns in a row, with nothing between them. The last may belong to a line feed.
        const std::size_t run = std::min(text.find_first_not_of('\r'), text.size());
        from += std::max<std::size_t>(1, run - 1);
        looked_at = 0;
    }
    return std::nullopt;
}

LogPlace LogReader::place(std::uint64_t offset, std::size_t message_bytes, std::uint64_t end) {
    return {.at = time_of(offset), .offset = offset, .end = end, .message_bytes = message_bytes};
}

LogEvent LogReader::event_at(const LogPlace& place) {
    std::string message = gap_.holds(place.offset)
                              ? gap_message(place.offset)
                              : repair_utf8(peek(place.offset, place.message_bytes));
    if (message.empty()) message = " ";
    drop_long_window();
    return {
        .at = place.at, .offset = place.offset, .end = place.end, .message = std::move(message)};
}

std::string LogReader::gap_message(std::uint64_t offset) const {
    return fmt::format(
        "[gruca: {} bytes are not kept here; of a long log the first {} and the last {} are]",
        gap_.end - offset, human_bytes(quota_.head_bytes), human_bytes(quota_.tail_bytes));
}

// A long line is not kept: whoever reads many logs side by side holds a window of each.
void LogReader::drop_long_window() {
    if (window_.size() > kWindowBytes) std::string().swap(window_);  // Assigning keeps the room.
}

std::uint64_t LogReader::event_start(std::uint64_t offset) {
    offset = std::min(offset, size_);
    if (gap_.holds(offset)) return gap_.begin;
    std::uint64_t start = line_start(offset);
    while (const std::optional<LogEvent> one = next(start)) {
        if (one->end > offset) break;
        start = one->end;
    }
    return start;
}

// Just behind the last line end before `offset`.
std::uint64_t LogReader::line_start(std::uint64_t offset) {
    const std::uint64_t first = gap_.begin < gap_.end && offset >= gap_.end ? gap_.end : 0;
    const std::uint64_t lowest = std::max(first, offset > kLineScanMax ? offset - kLineScanMax : 0);
    std::uint64_t block_end = offset;
    while (block_end > lowest) {
        const std::uint64_t block = std::max(
            lowest, block_end > kWindowBytes ? block_end - kWindowBytes : std::uint64_t{0});
        // One byte more, to see whether a "\r" at the block's end belongs to a "\r\n".
        const std::string_view text = peek(block, static_cast<std::size_t>(block_end - block) + 1);
        for (std::uint64_t at = block_end; at > block; --at) {
            const auto i = static_cast<std::size_t>(at - block);
            if (text[i - 1] == '\n') return at;
            const bool half = i < text.size() && text[i] == '\n';
            if (text[i - 1] == '\r' && !half) return at;
        }
        block_end = block;
    }
    return lowest;
}

LogIndexRecord LogReader::record(std::uint64_t number) {
    const std::uint64_t held = record_window_.size() / kLogIndexRecordBytes;
    if (number < record_window_at_ || number >= record_window_at_ + held) {
        record_window_at_ = number / kRecordsInWindow * kRecordsInWindow;
        record_window_ = read_at(index_.get(), record_window_at_ * kLogIndexRecordBytes,
                                 kRecordsInWindow * kLogIndexRecordBytes);
    }
    const std::size_t at =
        static_cast<std::size_t>(number - record_window_at_) * kLogIndexRecordBytes;
    if (at + kLogIndexRecordBytes > record_window_.size()) {
        throw Error(ErrorCode::data_loss, "the index of a log became shorter");
    }
    return decode_log_index_record(reinterpret_cast<const std::byte*>(record_window_.data()) + at);
}

TimePoint LogReader::time_of(std::uint64_t offset) {
    // The last record that begins at or before the offset.
    std::uint64_t low = 0;
    std::uint64_t high = records_;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (record(middle).offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? TimePoint() : time_from_ms(record(low - 1).at_ms);
}

std::uint64_t LogReader::first_at_or_after(TimePoint time) {
    std::uint64_t low = 0;
    std::uint64_t high = records_;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (record(middle).at_ms < to_ms(time)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == records_ ? size_ : std::min(record(low).offset, size_);
}

std::optional<TimePoint> LogReader::first_time() {
    if (size_ == 0 || records_ == 0) return std::nullopt;
    return time_of(0);
}

std::optional<TimePoint> LogReader::last_time() {
    if (size_ == 0 || records_ == 0) return std::nullopt;
    return time_of(size_ - 1);
}

}  // namespace gruca::service
