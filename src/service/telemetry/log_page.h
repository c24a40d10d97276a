// service/telemetry/log_page.h
//
// Pages of a log: as many events as fit, forwards from a place or backwards from one. A place is a
// byte offset where an event begins, which is what page tokens carry, so a page costs what it holds
// and not what the log holds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/telemetry/log_reader.h"

namespace gruca::service {

constexpr std::size_t kPageEventsMax = 10'000;
constexpr std::size_t kPageBytesMax = 1u << 20;
constexpr std::size_t kEventOverheadBytes =
    26;  // What CloudWatch counts for an event besides text.

struct PageLimits {
    std::size_t events_max = kPageEventsMax;
    std::size_t bytes_max = kPageBytesMax;
    std::optional<TimePoint> start = {};  // Inclusive.
    std::optional<TimePoint> end = {};    // Exclusive.
};

struct LogPage {
    std::vector<LogEvent> events;  // Oldest first.
    std::uint64_t begin = 0;       // The place before the first event …
    std::uint64_t end = 0;         // … and behind the last.
};

// The first events from `from` on.
LogPage page_forward(LogReader& log, std::uint64_t from, const PageLimits& limits);
// The last events before `until`.
LogPage page_backward(LogReader& log, std::uint64_t until, const PageLimits& limits);

// Where page_forward begins for these limits when nothing else is said, and page_backward ends.
std::uint64_t first_place(LogReader& log, const PageLimits& limits);
std::uint64_t last_place(LogReader& log, const PageLimits& limits);

}  // namespace gruca::service
