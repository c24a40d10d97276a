// service/job_board.h
//
// The jobs as everybody but the loop sees them: immutable copies, put up after they are durable. So
// an answer never shows what a crash could take back, and reading never waits for the loop.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "control/machine.h"

namespace gruca::service {

using JobPtr = std::shared_ptr<const control::Job>;

struct NodeOnBoard {
    JobPtr job;
    std::size_t index = 0;

    const control::Node& node() const { return job->nodes.at(index); }
};

class JobBoard {
  public:
    void publish(const control::Job& job);

    JobPtr find(const std::string& name) const;  // Null when there is none.
    // ARNs are resolved without regard to letter case.
    JobPtr find_by_arn(const std::string& arn) const;
    std::optional<NodeOnBoard> find_node(const std::string& node_id) const;

    std::vector<JobPtr> all() const;  // By name.
    std::vector<JobPtr> with_prefix(const std::string& name_prefix) const;

  private:
    struct NodePlace {
        std::string job;
        std::size_t index = 0;
    };

    mutable std::shared_mutex mutex_;  // Guards the maps.
    std::map<std::string, JobPtr> jobs_;
    std::map<std::string, std::string> name_by_arn_;  // Keys in lower case.
    std::map<std::string, NodePlace> nodes_;          // Of jobs that are not terminal.
};

}  // namespace gruca::service
