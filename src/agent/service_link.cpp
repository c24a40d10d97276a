#include "agent/service_link.h"

#include <algorithm>

namespace gruca::agent {
namespace {

// Beyond the service's own wait: for a slow machine, not for the service.
constexpr std::chrono::seconds kPollSlack{15};
// A service that hangs must not hold up a report for longer than it takes to try again.
constexpr std::chrono::seconds kReportTimeout{10};
constexpr std::chrono::milliseconds kPauseFirst{100};
constexpr std::chrono::milliseconds kPauseMax{3000};

}  // namespace

AwsServiceLink::AwsServiceLink(const spec::NodeConfig& config, const Clock& clock)
    : node_id_(config.node_id),
      client_({.origin = config.endpoint,
               .region = config.region,
               .credentials = {.access_key = config.access_key, .secret_key = config.secret_key}},
              clock) {}

spec::NodeOrder AwsServiceLink::poll(std::int64_t seen, const std::stop_token& stop) {
    const Json request = Json::object({{"node", node_id_}, {"seen_version", seen}});
    return spec::NodeOrder::from_json(client_.call("Gruca.PollOrder", request,
                                                   spec::kPollWait + kPollSlack,
                                                   [&] { return stop.stop_requested(); }));
}

void AwsServiceLink::report(const spec::NodeReport& report) {
    client_.call("Gruca.ReportNode", report.to_json(), kReportTimeout);
}

std::uint64_t AwsServiceLink::append_log(std::uint64_t offset, std::string bytes) {
    const Json reply =
        client_.call_raw("Gruca.AppendLog", std::move(bytes),
                         {{"x-gruca-node", node_id_}, {"x-gruca-offset", std::to_string(offset)}});
    return static_cast<std::uint64_t>(reply.at("size").as_int());
}

std::uint64_t AwsServiceLink::sync_log() {
    const Json reply = client_.call_raw(
        "Gruca.AppendLog", "",
        {{"x-gruca-node", node_id_}, {"x-gruca-offset", "0"}, {"x-gruca-sync", "1"}});
    return static_cast<std::uint64_t>(reply.at("size").as_int());
}

std::chrono::milliseconds pause_after(int failures) {
    return std::min(kPauseMax, kPauseFirst * (1 << std::clamp(failures - 1, 0, 10)));
}

}  // namespace gruca::agent
