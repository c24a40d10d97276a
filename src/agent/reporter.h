// agent/reporter.h
//
// Says to the service where the node is: the latest report, until the service has taken it. Reports
// that a newer one has overtaken are not sent.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "agent/service_link.h"
#include "spec/node.h"

namespace gruca::agent {

class Reporter {
  public:
    explicit Reporter(ServiceLink& service);

    void say(const spec::NodeReport& report);

  private:
    void work(const std::stop_token& stop);

    ServiceLink& service_;
    std::mutex mutex_;  // Guards latest_.
    std::condition_variable_any changed_;
    std::optional<spec::NodeReport> latest_;  // Not taken yet.
    std::jthread thread_;                     // Last: it uses all of the above.
};

}  // namespace gruca::agent
