// service/job_index.h
//
// The summaries of all jobs in the orders that lists ask for, so that a page costs what is on it
// and not what there is.
//
// Thread-compatible.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "service/state/database.h"

namespace gruca::service {

enum class JobOrder { creation, name, status };

// A job's place in an order: no two jobs have the same, and a place outlives its job's having it.
using JobPlace = std::tuple<std::string, std::int64_t, std::int64_t>;

JobPlace place_of(const JobSummary& job, JobOrder order);

struct JobQuery {
    JobOrder order = JobOrder::creation;
    bool descending = false;
    std::optional<JobPlace> after = {};  // Only what follows it in that direction.
    std::size_t count_max = 100;
    // Filters; what is empty lets everything through. Times are bounds that do not count.
    std::optional<TimePoint> created_after = {};
    std::optional<TimePoint> created_before = {};
    std::optional<TimePoint> modified_after = {};
    std::optional<TimePoint> modified_before = {};
    std::string name_contains = {};
    std::string status = {};
};

struct JobPage {
    std::vector<JobSummary> jobs;
    bool more = false;  // Others follow the last one.
};

class JobIndex {
  public:
    void put(JobSummary job);  // Replaces what the job was.

    const JobSummary* find(const std::string& name) const;
    // ARNs are resolved without regard to letter case, but the same letters come first.
    const JobSummary* find_by_arn(const std::string& arn) const;
    std::vector<JobSummary> with_prefix(const std::string& name_prefix) const;  // By name.
    JobPage list(const JobQuery& query) const;

  private:
    using Order = std::map<JobPlace, const JobSummary*>;
    template <class Iterator>
    static JobPage page_of(Iterator begin, Iterator end, const JobQuery& query);

    std::map<std::string, JobSummary> jobs_;
    std::array<Order, 3> orders_;                     // One for each JobOrder.
    std::map<std::string, std::string> name_by_arn_;  // Keys in lower case.
};

}  // namespace gruca::service
