#include "cli/job_logs.h"

#include <algorithm>

#include "base/error.h"

namespace gruca::cli {
namespace {

constexpr const char* kGroup = "/aws/sagemaker/TrainingJobs";
constexpr int kStreamsPerPage = 50;
constexpr int kEventsPerPage = 10000;

// "job/algo-1-1764581400" -> "algo-1"
std::string host_of(const std::string& stream) {
    const std::size_t slash = stream.rfind('/');
    const std::string name = slash == std::string::npos ? stream : stream.substr(slash + 1);
    const std::size_t dash = name.rfind('-');
    return name.substr(0, dash == 0 ? std::string::npos : dash);
}

Json events_request(const std::string& stream, bool from_head) {
    return Json::object({{"logGroupName", kGroup},
                         {"logStreamName", stream},
                         {"startFromHead", from_head},
                         {"limit", kEventsPerPage}});
}

std::vector<LogLine> lines_of(const Json& page, const std::string& stream) {
    std::vector<LogLine> lines;
    const Json* events = page.find("events");
    if (events == nullptr) return lines;
    for (const Json& event : events->as_array()) {
        LogLine line{.timestamp_ms = event.get_int("timestamp"),
                     .host = host_of(stream),
                     .message = event.get_string("message"),
                     .event = event};
        line.event.set("logStreamName", stream);
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace

void JobLogs::find_streams() {
    Json request = Json::object({{"logGroupName", kGroup},
                                 {"logStreamNamePrefix", job_ + "/"},
                                 {"limit", kStreamsPerPage}});
    for (;;) {
        Json page;
        try {
            page = api_.call("Logs_20140328.DescribeLogStreams", request);
        } catch (const Error& error) {  // Before its first line a job may have no log at all.
            if (error.code() != ErrorCode::not_found) throw;
            return;
        }
        if (const Json* streams = page.find("logStreams")) {
            for (const Json& stream : streams->as_array()) {
                token_of_.try_emplace(stream.at("logStreamName").as_string());
            }
        }
        const std::string next = page.get_string("nextToken");
        if (next.empty() || next == request.get_string("nextToken")) return;
        request.set("nextToken", next);
    }
}

std::vector<LogLine> JobLogs::next_page(const std::string& stream) {
    std::string& token = token_of_[stream];
    Json request = events_request(stream, true);
    if (!token.empty()) request.set("nextToken", token);
    const Json page = api_.call("Logs_20140328.GetLogEvents", request);
    token = page.get_string("nextForwardToken");
    return lines_of(page, stream);
}

void JobLogs::read_new(std::size_t instances, const std::function<void(const LogLine&)>& visit) {
    if (token_of_.size() < instances) find_streams();
    std::vector<std::string> unfinished;
    for (const auto& [stream, token] : token_of_) unfinished.push_back(stream);
    while (!unfinished.empty()) {
        std::vector<LogLine> lines;
        std::vector<std::string> more;
        for (const std::string& stream : unfinished) {
            std::vector<LogLine> page = next_page(stream);
            if (!page.empty()) more.push_back(stream);
            std::move(page.begin(), page.end(), std::back_inserter(lines));
        }
        std::stable_sort(lines.begin(), lines.end(), [](const LogLine& a, const LogLine& b) {
            return a.timestamp_ms < b.timestamp_ms;
        });
        for (const LogLine& line : lines) visit(line);
        unfinished = std::move(more);
    }
}

void JobLogs::read_last(const std::string& host, const std::function<void(const LogLine&)>& visit) {
    find_streams();
    for (const auto& [stream, token] : token_of_) {
        if (host_of(stream) != host) continue;
        const Json page = api_.call("Logs_20140328.GetLogEvents", events_request(stream, false));
        for (const LogLine& line : lines_of(page, stream)) visit(line);
    }
}

}  // namespace gruca::cli
