#include "service/api/log_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace gruca::service::api {
namespace {

bool log_is_complete(const JobOnBoard& job, const std::string& host) {
    if (!job.live) return true;
    for (const control::Node& node : job.live->nodes) {
        if (node.host != host) continue;
        return node.gone || node.report.phase >= spec::NodePhase::uploaded;
    }
    return false;
}

std::string job_part(const std::string& stream) {
    return stream.substr(0, stream.find('/'));
}

}  // namespace

std::vector<LogStream> streams_of(const JobOnBoard& job) {
    std::vector<LogStream> streams;
    const JobSummary& facts = job.summary;
    if (!facts.training_started) return streams;
    const auto second = std::chrono::floor<std::chrono::seconds>(*facts.training_started);
    for (int i = 1; i <= facts.instances; ++i) {
        const std::string host = fmt::format("algo-{}", i);
        streams.push_back(
            {.name = fmt::format("{}/{}-{}", facts.name, host, second.time_since_epoch().count()),
             .created = *facts.training_started,
             .log = {.job = facts.name, .host = host},
             .complete = log_is_complete(job, host)});
    }
    return streams;
}

std::vector<LogStream> streams_with_prefix(const JobBoard& jobs, const std::string& prefix) {
    std::vector<LogStream> found;
    const auto add = [&](const JobOnBoard& job) {
        for (LogStream& stream : streams_of(job)) {
            if (stream.name.starts_with(prefix)) found.push_back(std::move(stream));
        }
    };
    if (prefix.find('/') != std::string::npos) {
        if (const auto job = jobs.find_listed(job_part(prefix))) add(*job);
    } else {
        for (const JobOnBoard& job : jobs.with_prefix(prefix)) add(job);
    }
    std::sort(found.begin(), found.end(),
              [](const LogStream& a, const LogStream& b) { return a.name < b.name; });
    return found;
}

LogStream require_stream(const JobBoard& jobs, const std::string& name) {
    if (const auto job = jobs.find_listed(job_part(name))) {
        for (LogStream& stream : streams_of(*job)) {
            if (stream.name == name) return std::move(stream);
        }
    }
    throw Error(ErrorCode::not_found, "The specified log stream does not exist.");
}

void require_group(const Json& request, RequestReader& read) {
    const TextRule rule{.length_min = 1, .length_max = 2048};
    std::string group = read.text("logGroupName", rule);
    if (group.empty()) group = read.text("logGroupIdentifier", rule);
    read.finish();
    if (group.empty() && request.find("logGroupName") == nullptr) {
        throw Error(ErrorCode::invalid_argument,
                    "1 validation error detected: Value null at 'logGroupName' failed to satisfy "
                    "constraint: Member must not be null");
    }
    // An identifier may be the group's ARN.
    if (group.starts_with("arn:")) {
        const std::size_t name = group.find(":log-group:");
        if (name != std::string::npos) group = group.substr(name + 11);
        if (group.ends_with(":*")) group.resize(group.size() - 2);
    }
    if (group == kLogGroup) return;
    throw Error(ErrorCode::not_found, "The specified log group does not exist.");
}

std::string group_arn(const spec::AccountFacts& account) {
    return fmt::format("arn:aws:logs:{}:{}:log-group:{}", account.region, account.account,
                       kLogGroup);
}

std::string stream_arn(const spec::AccountFacts& account, const std::string& stream) {
    return fmt::format("{}:log-stream:{}", group_arn(account), stream);
}

TextRule stream_name_rule() {
    return {.length_min = 1, .length_max = 512, .pattern = "^[^:*]*$"};
}

}  // namespace gruca::service::api
