// agent/service_link.h
//
// The four things an agent says to the service. Each call is one try: it throws unavailable or
// deadline_exceeded when the service cannot be reached, and whoever calls tries again.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "net/aws_client.h"
#include "spec/node.h"

namespace gruca::agent {

class ServiceLink {
  public:
    virtual ~ServiceLink() = default;

    // Returns at once when there is an order newer than `seen`, otherwise after spec::kPollWait.
    virtual spec::NodeOrder poll(std::int64_t seen, const std::stop_token& stop) = 0;
    virtual void report(const spec::NodeReport& report) = 0;
    // Returns the bytes of the log that the service has now. Bytes beyond those it has are refused.
    virtual std::uint64_t append_log(std::uint64_t offset, std::string bytes) = 0;
    // Returns the bytes of the log that the service has on disk now: it writes what it has first.
    virtual std::uint64_t sync_log() = 0;
};

class AwsServiceLink final : public ServiceLink {
  public:
    AwsServiceLink(const spec::NodeConfig& config, const Clock& clock);

    spec::NodeOrder poll(std::int64_t seen, const std::stop_token& stop) override;
    void report(const spec::NodeReport& report) override;
    std::uint64_t append_log(std::uint64_t offset, std::string bytes) override;
    std::uint64_t sync_log() override;

  private:
    const std::string node_id_;
    net::AwsClient client_;
};

// How long to wait after the `failures`-th failed try in a row: doubles up to a few seconds.
std::chrono::milliseconds pause_after(int failures);

}  // namespace gruca::agent
