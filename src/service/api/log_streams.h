// service/api/log_streams.h
//
// The log streams of CloudWatch Logs, derived from jobs: every node of a job has exactly one from
// the moment training starts, also when it never says anything. Clients count on both: some show
// nothing until they see as many streams as instances, others ask for ever when they see more.
//
// Values.
#pragma once

#include <string>
#include <vector>

#include "service/api/call.h"
#include "service/api/request.h"

namespace gruca::service::api {

constexpr std::string_view kLogGroup = "/aws/sagemaker/TrainingJobs";

struct LogStream {
    std::string name;  // "<job>/algo-1-<epoch seconds of its creation>"
    TimePoint created = {};
    LogName log;
    bool complete = false;  // Nothing will be appended any more.
};

// The streams of a job, in the order of its nodes.
std::vector<LogStream> streams_of(const JobOnBoard& job);
// In the order of their names.
std::vector<LogStream> streams_with_prefix(const JobBoard& jobs, const std::string& prefix);
// Throws not_found, in CloudWatch's words.
LogStream require_stream(const JobBoard& jobs, const std::string& name);

// Reads logGroupName or logGroupIdentifier; throws not_found unless it is our group.
void require_group(const Json& request, RequestReader& read);

std::string group_arn(const spec::AccountFacts& account);
std::string stream_arn(const spec::AccountFacts& account, const std::string& stream);

TextRule stream_name_rule();

}  // namespace gruca::service::api
