#include <algorithm>

#include "base/error.h"
#include "service/api/log_streams.h"
#include "service/api/operations.h"
#include "service/api/page_token.h"

namespace gruca::service::api {
namespace {

constexpr std::int64_t kPageStreamsMax = 50;

struct Row {
    LogStream stream;
    std::optional<LogTimes> times = {};

    TimePoint last() const { return times ? times->last : TimePoint(); }
};

Row row_of(const Context& context, LogStream stream) {
    const std::optional<LogTimes> times = context.logs.times(stream.log);
    return {.stream = std::move(stream), .times = times};
}

Json to_json(const Context& context, const Row& row) {
    Json one = Json::object(
        {{"logStreamName", row.stream.name}, {"creationTime", to_ms(row.stream.created)}});
    if (row.times) {
        one.set("firstEventTimestamp", to_ms(row.times->first));
        one.set("lastEventTimestamp", to_ms(row.times->last));
        one.set("lastIngestionTime", to_ms(row.times->last));
    }
    one.set("uploadSequenceToken", "1");
    one.set("arn", stream_arn(context.account, row.stream.name));
    one.set("storedBytes", 0);
    return one;
}

}  // namespace

Outcome describe_log_streams(const Context& context, const Call& call) {
    RequestReader read(call.request);
    const std::string prefix = read.text("logStreamNamePrefix", stream_name_rule());
    const std::string order = read.text("orderBy", {.values = {"LogStreamName", "LastEventTime"}});
    const bool descending = read.boolean("descending", false);
    const auto limit = static_cast<std::size_t>(
        read.integer("limit", {.min = 1, .max = kPageStreamsMax, .otherwise = kPageStreamsMax}));
    const std::string token = read.text("nextToken", {.length_max = 8192});
    require_group(call.request, read);
    const bool by_time = order == "LastEventTime";
    if (by_time && !prefix.empty()) {
        throw Error(ErrorCode::invalid_argument,
                    "Cannot order by LastEventTime with a logStreamNamePrefix.");
    }
    const Json place = token.empty() ? Json(0) : read_page_token(call.request, token);

    std::vector<LogStream> streams = streams_with_prefix(context.jobs, prefix);
    std::vector<Row> rows;
    if (by_time) {
        for (LogStream& stream : streams) rows.push_back(row_of(context, std::move(stream)));
        std::stable_sort(rows.begin(), rows.end(),
                         [](const Row& a, const Row& b) { return a.last() < b.last(); });
    }
    if (descending) {
        std::reverse(rows.begin(), rows.end());
        std::reverse(streams.begin(), streams.end());
    }
    // All of one job in one answer even beyond the largest page: some clients never follow a token.
    const bool one_job = prefix.find('/') != std::string::npos;
    const std::size_t most = one_job && limit == kPageStreamsMax ? streams.size() : limit;
    const std::size_t from = std::min(
        streams.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, place.as_int())));
    const std::size_t until = std::min(streams.size(), from + most);
    Json list = Json::array();
    for (std::size_t i = from; i < until; ++i) {
        list.push(to_json(context, by_time ? rows[i] : row_of(context, streams[i])));
    }
    Json reply = Json::object({{"logStreams", std::move(list)}});
    if (until < streams.size()) {
        reply.set("nextToken", make_page_token(call.request, Json(until)));
    }
    return reply;
}

}  // namespace gruca::service::api
