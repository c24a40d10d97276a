// service/job_board.h
//
// The jobs as everybody but the loop sees them: put up after they are durable. So an answer never
// shows what a crash could take back, and reading never waits for the loop.
//
// Jobs that are not over are here whole, as immutable copies; of the others a summary is, and the
// rest is read from the database when it is asked for. The last kRecalledMax asked for are kept.
//
// Thread-safe.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "control/machine.h"
#include "service/job_index.h"
#include "service/state/database.h"

namespace gruca::service {

constexpr std::size_t kRecalledMax = 256;

using JobPtr = std::shared_ptr<const control::Job>;

JobSummary summary_of(const control::Job& job);

struct NodeOnBoard {
    JobPtr job;
    std::size_t index = 0;

    const control::Node& node() const { return job->nodes.at(index); }
};

struct JobOnBoard {
    JobSummary summary;
    JobPtr live;  // Null when the job is over.
};

class JobBoard {
  public:
    // The database outlives the board.
    explicit JobBoard(const Database& database) : database_(database) {}

    void publish(const control::Job& job);
    // Those that were over before the service started.
    void publish_over(std::vector<JobSummary> jobs);

    JobPtr find(const std::string& name) const;  // Null when there is none.
    // ARNs are resolved without regard to letter case.
    JobPtr find_by_arn(const std::string& arn) const;
    std::optional<std::string> find_name_by_arn(const std::string& arn) const;
    std::optional<NodeOnBoard> find_node(const std::string& node_id) const;

    // These never read the database.
    std::optional<JobOnBoard> find_listed(const std::string& name) const;
    std::vector<JobOnBoard> with_prefix(const std::string& name_prefix) const;  // By name.
    JobPage list(const JobQuery& query) const;

  private:
    struct NodePlace {
        std::string job;
        std::size_t index = 0;
    };

    JobPtr find_live(const std::string& name) const;
    JobPtr recall(const std::string& name) const;
    void remember(const JobPtr& job) const;

    const Database& database_;

    mutable std::shared_mutex mutex_;  // Guards what follows.
    JobIndex index_;
    std::map<std::string, JobPtr> live_;
    std::map<std::string, NodePlace> nodes_;  // Of jobs that are not over.

    mutable std::mutex recalled_mutex_;   // Guards what follows; may be taken with mutex_ held.
    mutable std::list<JobPtr> recalled_;  // The last one asked for first.
    mutable std::map<std::string, std::list<JobPtr>::iterator> recalled_by_name_;
    // How many jobs were over when they were published: what was read before that may be old.
    mutable std::uint64_t changes_of_over_ = 0;
};

}  // namespace gruca::service
