// service/telemetry/log_reader.h
//
// One log as the events that CloudWatch Logs would show: a line an event, without its end, valid
// UTF-8, at least one character, at most kEventBytesMax raw bytes.
//
//   * "\n" and "\r\n" end a line. So does a lone "\r", because a progress bar that redraws itself
//     should be seen while it moves; nothing between two of them is no event.
//   * An empty line is a single blank. A byte that is not UTF-8 becomes U+FFFD.
//   * A longer line is cut into several events, between characters.
//   * A line that is not finished is no event yet, unless the log is complete.
//   * An event's time is when its first byte arrived.
//   * In place of what the log's quota has dropped there is one event that says so. The line before
//     it ends there, and the first one behind it may have lost its beginning.
//
// Reads pieces of the file as they are needed; memory is bounded by a few kEventBytesMax.
// Shows the log as it was when this was made. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "service/telemetry/log_store.h"

namespace gruca::service {

constexpr std::size_t kEventBytesMax = 1u << 20;
// How far back the start of a line is looked for; a longer line may be cut elsewhere when the same
// log is read backwards.
constexpr std::uint64_t kLineScanMax = 4u << 20;

struct LogEvent {
    TimePoint at = {};
    std::uint64_t offset = 0;  // Of its first byte; the event's identity within the log.
    std::uint64_t end = 0;     // Where the next event begins.
    std::string message;
};

// An event without its message: so much is held of one of many logs that are read side by side.
struct LogPlace {
    TimePoint at = {};
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    std::size_t message_bytes = 0;  // As they are in the log.
};

class LogReader {
  public:
    // A log that does not exist yet is an empty one. `complete`: nothing will be appended any more.
    LogReader(const LogFiles& files, bool complete);

    std::uint64_t size() const { return size_; }

    // The first event that begins at `from` or after, given that `from` is where one begins.
    std::optional<LogEvent> next(std::uint64_t from);

    // The same in two steps. Between them no more of a long line is held than of others.
    std::optional<LogPlace> next_place(std::uint64_t from);
    LogEvent event_at(const LogPlace& place);

    // Where the event begins that holds the byte at `offset`.
    std::uint64_t event_start(std::uint64_t offset);

    // Of the first byte that arrived at `time` or later; size() when there is none.
    std::uint64_t first_at_or_after(TimePoint time);

    std::optional<TimePoint> first_time();
    std::optional<TimePoint> last_time();

  private:
    std::string_view peek(std::uint64_t from, std::size_t bytes);
    LogIndexRecord record(std::uint64_t number);
    TimePoint time_of(std::uint64_t offset);
    std::optional<LogPlace> find_event(std::uint64_t from);
    LogPlace place(std::uint64_t offset, std::size_t message_bytes, std::uint64_t end);
    std::string gap_message(std::uint64_t offset) const;
    void drop_long_window();
    std::uint64_t line_start(std::uint64_t offset);

    UniqueFd bytes_;
    UniqueFd index_;
    std::uint64_t size_ = 0;
    LogGap gap_;
    std::uint64_t records_ = 0;
    const bool complete_;
    const LogQuota quota_;
    std::string window_;  // The bytes of the file from window_at_ on.
    std::uint64_t window_at_ = 0;
    std::string record_window_;  // Whole records from number record_window_at_ on.
    std::uint64_t record_window_at_ = 0;
};

}  // namespace gruca::service
