#include "service/telemetry/log_page.h"

#include <algorithm>
#include <deque>
#include <iterator>

namespace gruca::service {
namespace {

constexpr std::uint64_t kFirstWindowBytes = 64u << 10;

std::size_t cost(const LogEvent& event) {
    return event.message.size() + kEventOverheadBytes;
}

// The last events of [from, until), no more than fit.
std::deque<LogEvent> last_events(LogReader& log, std::uint64_t from, std::uint64_t until,
                                 const PageLimits& limits, bool& full) {
    std::deque<LogEvent> kept;
    std::size_t bytes = 0;
    while (std::optional<LogEvent> event = log.next(from)) {
        if (event->offset >= until) break;
        from = event->end;
        if (limits.start && event->at < *limits.start) continue;
        if (limits.end && event->at >= *limits.end) break;
        bytes += cost(*event);
        kept.push_back(std::move(*event));
        while (kept.size() > limits.events_max || (bytes > limits.bytes_max && kept.size() > 1)) {
            bytes -= cost(kept.front());
            kept.pop_front();
            full = true;
        }
    }
    return kept;
}

}  // namespace

LogPage page_forward(LogReader& log, std::uint64_t from, const PageLimits& limits) {
    LogPage page{.events = {}, .begin = from, .end = from};
    std::size_t bytes = 0;
    std::uint64_t at = from;
    while (page.events.size() < limits.events_max) {
        std::optional<LogEvent> event = log.next(at);
        if (!event || (limits.end && event->at >= *limits.end)) break;
        at = event->end;
        if (limits.start && event->at < *limits.start) continue;
        bytes += cost(*event);
        if (bytes > limits.bytes_max && !page.events.empty()) break;
        page.end = event->end;
        page.events.push_back(std::move(*event));
    }
    if (!page.events.empty()) page.begin = page.events.front().offset;
    return page;
}

LogPage page_backward(LogReader& log, std::uint64_t until, const PageLimits& limits) {
    until = std::min(until, log.size());
    const std::uint64_t lowest = std::min(first_place(log, limits), until);
    // No page holds more bytes than this; a few more for line ends and blanks.
    const std::uint64_t window_max = 2 * limits.bytes_max + kEventBytesMax;
    for (std::uint64_t window = kFirstWindowBytes;; window *= 2) {
        const std::uint64_t wanted = until > window ? until - window : 0;
        const std::uint64_t from = wanted <= lowest ? lowest : log.event_start(wanted);
        bool full = false;
        std::deque<LogEvent> events = last_events(log, from, until, limits, full);
        if (!full && from > lowest && window < window_max) continue;
        LogPage page{.events = {}, .begin = until, .end = until};
        if (!events.empty()) {
            page.begin = events.front().offset;
            page.end = events.back().end;
        }
        std::move(events.begin(), events.end(), std::back_inserter(page.events));
        return page;
    }
}

std::uint64_t first_place(LogReader& log, const PageLimits& limits) {
    return limits.start ? log.event_start(log.first_at_or_after(*limits.start)) : 0;
}

std::uint64_t last_place(LogReader& log, const PageLimits& limits) {
    return limits.end ? log.first_at_or_after(*limits.end) : log.size();
}

}  // namespace gruca::service
