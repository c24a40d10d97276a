#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "service/api/log_streams.h"
#include "service/api/operations.h"
#include "service/telemetry/log_page.h"

namespace gruca::service::api {
namespace {

enum class Direction { forward, backward };

struct Place {
    Direction direction = Direction::backward;
    std::uint64_t offset = 0;
};

std::string token_of(Direction direction, std::uint64_t offset) {
    return fmt::format("{}/{:032}/s", direction == Direction::forward ? 'f' : 'b', offset);
}

Place place_of(const std::string& token) {
    const std::vector<std::string> parts = split(token, '/');
    if (parts.size() == 3 && (parts[0] == "f" || parts[0] == "b") && parts[2] == "s") {
        if (const auto offset = parse_int(parts[1]); offset && *offset >= 0) {
            return {.direction = parts[0] == "f" ? Direction::forward : Direction::backward,
                    .offset = static_cast<std::uint64_t>(*offset)};
        }
    }
    throw Error(ErrorCode::invalid_argument, "The specified nextToken is invalid.");
}

Json to_json(const LogPage& page) {
    Json events = Json::array();
    for (const LogEvent& event : page.events) {
        events.push(Json::object({{"timestamp", to_ms(event.at)},
                                  {"message", event.message},
                                  {"ingestionTime", to_ms(event.at)}}));
    }
    return Json::object({{"events", std::move(events)},
                         {"nextForwardToken", token_of(Direction::forward, page.end)},
                         {"nextBackwardToken", token_of(Direction::backward, page.begin)}});
}

}  // namespace

Outcome get_log_events(const Context& context, const Call& call) {
    RequestReader read(call.request);
    TextRule stream_rule = stream_name_rule();
    stream_rule.required = true;
    const std::string name = read.text("logStreamName", stream_rule);
    PageLimits limits;
    limits.start = read.milliseconds("startTime");
    limits.end = read.milliseconds("endTime");
    limits.events_max = static_cast<std::size_t>(
        read.integer("limit", {.min = 1,
                               .max = static_cast<std::int64_t>(kPageEventsMax),
                               .otherwise = static_cast<std::int64_t>(kPageEventsMax)}));
    const bool from_head = read.boolean("startFromHead", false);
    const std::string token = read.text("nextToken", {.length_max = 8192});
    require_group(call.request, read);

    const LogStream stream = require_stream(context.jobs, name);
    LogReader log(context.logs.files(stream.log), stream.complete);
    Place place{.direction = from_head ? Direction::forward : Direction::backward};
    if (!token.empty()) {
        place = place_of(token);
        if (place.offset > log.size()) {
            throw Error(ErrorCode::invalid_argument, "The specified nextToken is invalid.");
        }
    } else {
        place.offset = from_head ? first_place(log, limits) : last_place(log, limits);
    }
    return to_json(place.direction == Direction::forward
                       ? page_forward(log, place.offset, limits)
                       : page_backward(log, place.offset, limits));
}

}  // namespace gruca::service::api
