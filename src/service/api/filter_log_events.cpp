#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <queue>
#include <tuple>

#include "base/error.h"
#include "service/api/log_filter.h"
#include "service/api/log_streams.h"
#include "service/api/operations.h"
#include "service/api/page_token.h"
#include "service/telemetry/log_page.h"

namespace gruca::service::api {
namespace {

constexpr std::size_t kStreamNamesMax = 100;
// Logs read side by side for one answer; each holds a window of its file in memory.
constexpr std::size_t kStreamsSearchedMax = 200;
// Bytes looked at for one answer: a page may come back with few events, or none, and a token.
constexpr std::size_t kSearchedBytesMax = 64u << 20;

// Events of several streams have one order, in which no two are equal.
using Rank = std::tuple<TimePoint, std::size_t, std::uint64_t>;  // Time, stream, offset.

struct Query {
    std::vector<std::string> names;
    std::string prefix;
    std::string pattern;
    std::string token;
    PageLimits limits;
};

Query read_query(const Json& request) {
    RequestReader read(request);
    Query query;
    query.names = read.texts("logStreamNames", 1, kStreamNamesMax, stream_name_rule());
    query.prefix = read.text("logStreamNamePrefix", stream_name_rule());
    query.pattern = read.text("filterPattern", {.length_max = 1024});
    query.token = read.text("nextToken", {.length_max = 8192});
    query.limits.start = read.milliseconds("startTime");
    query.limits.end = read.milliseconds("endTime");
    query.limits.events_max = static_cast<std::size_t>(
        read.integer("limit", {.min = 1,
                               .max = static_cast<std::int64_t>(kPageEventsMax),
                               .otherwise = static_cast<std::int64_t>(kPageEventsMax)}));
    require_group(request, read);
    if (!query.names.empty() && !query.prefix.empty()) {
        throw Error(ErrorCode::invalid_argument,
                    "logStreamNames and logStreamNamePrefix cannot be given together.");
    }
    return query;
}

std::vector<LogStream> streams_of(const Context& context, const Query& query) {
    if (query.names.empty()) return streams_with_prefix(context.jobs, query.prefix);
    std::vector<LogStream> streams;
    for (const std::string& name : query.names) {
        streams.push_back(require_stream(context.jobs, name));
    }
    return streams;
}

// One stream on its way through the merge. It holds a place and no message: two hundred long lines
// at once are too many.
struct Cursor {
    std::unique_ptr<LogReader> log;
    std::size_t stream = 0;
    LogPlace place = {};

    Rank rank() const { return {place.at, stream, place.offset}; }
    bool advance(std::uint64_t from, const PageLimits& limits) {
        while (const auto next = log->next_place(from)) {
            from = next->end;
            if (limits.start && next->at < *limits.start) continue;
            if (limits.end && next->at >= *limits.end) return false;
            place = *next;
            return true;
        }
        return false;
    }
};

// Known without a look at the log's files, but for the first time.
bool may_have_events(const Context& context, const LogName& log, const PageLimits& limits) {
    const std::optional<LogTimes> times = context.logs.times(log);
    return times && (!limits.start || times->last >= *limits.start) &&
           (!limits.end || times->first < *limits.end);
}

std::vector<Cursor> open_cursors(const Context& context, const std::vector<LogStream>& streams,
                                 const PageLimits& limits) {
    std::vector<Cursor> cursors;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        if (!may_have_events(context, streams[i].log, limits)) continue;
        if (cursors.size() == kStreamsSearchedMax) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("more than {} log streams have events in that time; name "
                                    "streams, give a logStreamNamePrefix, or a later startTime",
                                    kStreamsSearchedMax));
        }
        Cursor cursor{.log = std::make_unique<LogReader>(context.logs.files(streams[i].log),
                                                         streams[i].complete),
                      .stream = i};
        if (cursor.advance(first_place(*cursor.log, limits), limits)) {
            cursors.push_back(std::move(cursor));
        }
    }
    return cursors;
}

Json to_json(const LogEvent& event, const std::string& stream) {
    return Json::object({{"logStreamName", stream},
                         {"timestamp", to_ms(event.at)},
                         {"message", event.message},
                         {"ingestionTime", to_ms(event.at)},
                         {"eventId", fmt::format("{}:{:020}", stream, event.offset)}});
}

// The events after `after`, in order, and the rank of the last one looked at if more may follow.
std::optional<Rank> merge(const std::vector<LogStream>& streams, std::vector<Cursor> cursors,
                          const Query& query, const std::optional<Rank>& after, Json& events) {
    const LogFilter filter(query.pattern);
    const auto later = [](const Cursor& a, const Cursor& b) { return a.rank() > b.rank(); };
    std::make_heap(cursors.begin(), cursors.end(), later);
    std::size_t count = 0;
    std::size_t bytes = 0;
    std::size_t searched = 0;
    std::optional<Rank> last;
    while (!cursors.empty()) {
        std::pop_heap(cursors.begin(), cursors.end(), later);
        Cursor& cursor = cursors.back();
        if (!after || cursor.rank() > *after) {
            const LogEvent event = cursor.log->event_at(cursor.place);
            const std::size_t cost = event.message.size() + kEventOverheadBytes;
            const bool matches = filter.matches(event.message);
            const bool fits = count < query.limits.events_max && searched < kSearchedBytesMax &&
                              (!matches || count == 0 || bytes + cost <= query.limits.bytes_max);
            if (!fits) return last;
            if (matches) {
                events.push(to_json(event, streams[cursor.stream].name));
                ++count;
                bytes += cost;
            }
            searched += cost;
            last = cursor.rank();
        }
        if (cursor.advance(cursor.place.end, query.limits)) {
            std::push_heap(cursors.begin(), cursors.end(), later);
        } else {
            cursors.pop_back();
        }
    }
    return std::nullopt;
}

}  // namespace

Outcome filter_log_events(const Context& context, const Call& call) {
    Query query = read_query(call.request);
    std::vector<LogStream> streams = streams_of(context, query);
    std::sort(streams.begin(), streams.end(),
              [](const LogStream& a, const LogStream& b) { return a.name < b.name; });
    std::optional<Rank> after;
    if (!query.token.empty()) {
        const Json place = read_page_token(call.request, query.token);
        const TimePoint at = time_from_ms(place.at("t").as_int());
        const std::string name = place.at("s").as_string();
        const auto stream =
            std::find_if(streams.begin(), streams.end(),
                         [&](const LogStream& candidate) { return candidate.name >= name; });
        after = Rank{at, static_cast<std::size_t>(stream - streams.begin()),
                     static_cast<std::uint64_t>(place.at("o").as_int())};
        query.limits.start = std::max(at, query.limits.start.value_or(at));
    }
    Json events = Json::array();
    const std::optional<Rank> last =
        merge(streams, open_cursors(context, streams, query.limits), query, after, events);
    Json searched = Json::array();
    Json reply =
        Json::object({{"events", std::move(events)}, {"searchedLogStreams", std::move(searched)}});
    if (last) {
        reply.set(
            "nextToken",
            make_page_token(call.request, Json::object({{"t", to_ms(std::get<0>(*last))},
                                                        {"s", streams[std::get<1>(*last)].name},
                                                        {"o", std::get<2>(*last)}})));
    }
    return reply;
}

}  // namespace gruca::service::api
