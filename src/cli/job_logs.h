// cli/job_logs.h
//
// Reads the log of a job as the SDKs do: DescribeLogStreams until every instance has its stream,
// GetLogEvents from the head with forward tokens, until a token comes back unchanged.
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/context.h"

namespace gruca::cli {

struct LogLine {
    std::int64_t timestamp_ms = 0;
    std::string host;  // "algo-1"
    std::string message;
    Json event;  // As GetLogEvents gave it, with logStreamName.
};

class JobLogs {
  public:
    JobLogs(Api& api, std::string job) : api_(api), job_(std::move(job)) {}

    // Visits every line that is new, in order of time as far as a page of each stream allows.
    // `instances` is how many streams there will be at last.
    void read_new(std::size_t instances, const std::function<void(const LogLine&)>& visit);

    // Visits the last lines of one host, a page of them; none when it has no log.
    void read_last(const std::string& host, const std::function<void(const LogLine&)>& visit);

  private:
    void find_streams();
    std::vector<LogLine> next_page(const std::string& stream);

    Api& api_;
    const std::string job_;
    std::map<std::string, std::string> token_of_;  // By stream name; empty at the head.
};

}  // namespace gruca::cli
