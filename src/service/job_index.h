// service/job_index.h
//
// The summaries of all jobs in the orders that lists ask for, so that a page costs what is on it
// and not what there is.
//
// Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

// How many rows are looked at in the order of a list. Where these do not fill the page, all are
// looked at in the order in which they lie in memory, which is far quicker, and what matches is
// sorted.
constexpr std::size_t kRowsWalkedMax = 1000;

class JobIndex {
  public:
    void put(JobSummary job);  // Replaces what the job was.
    // Many at once, of names that are not there yet: sorted once, not each into its place.
    void put_new(std::vector<JobSummary> jobs);

    const JobSummary* find(const std::string& name) const;
    // ARNs are resolved without regard to letter case, but the same letters come first.
    const JobSummary* find_by_arn(const std::string& arn) const;
    std::vector<JobSummary> with_prefix(const std::string& name_prefix) const;  // By name.
    JobPage list(const JobQuery& query) const;

  private:
    using Slot = std::uint32_t;  // Of a job, in the order in which they came.
    using Order = std::vector<Slot>;
    using PlaceView = std::tuple<std::string_view, std::int64_t, std::int64_t>;

    // What orders and filters look at: a filter that matches nothing reads all of these, one after
    // another in memory, and no summary.
    struct Row {
        TimePoint created;
        TimePoint modified;
        std::int64_t number;
        std::uint64_t name_begin;  // In names_.
        std::uint32_t name_bytes;
        std::uint32_t status;  // In statuses_.
    };

    Slot add(JobSummary job);
    std::uint32_t status_number(const std::string& status);
    std::string_view name_of(const Row& row) const;
    PlaceView place_of_slot(Slot slot, JobOrder order) const;
    const Order& places(JobOrder order) const;
    void insert(Slot slot, JobOrder order);
    void erase(Slot slot, JobOrder order);
    Order::const_iterator first_not_before(const PlaceView& place, JobOrder order) const;
    Order::const_iterator first_behind(const PlaceView& place, JobOrder order) const;
    std::uint32_t find_status(const std::string& status) const;
    bool matches(const Row& row, const JobQuery& query, std::uint32_t status) const;
    // One more than the page has, if there are so many.
    template <class Iterator>
    std::optional<std::vector<Slot>> walk(Iterator begin, Iterator end,
                                          const JobQuery& query) const;
    std::vector<Slot> scan(const JobQuery& query) const;
    JobPage page_of(const std::vector<Slot>& slots, const JobQuery& query) const;

    std::vector<Row> rows_;                    // By slot.
    std::deque<JobSummary> jobs_;              // By slot.
    std::string names_;                        // One after another.
    std::vector<std::string> statuses_;        // Those that occurred.
    std::array<Order, 3> orders_;              // One for each JobOrder, sorted.
    std::map<std::string, Slot> slot_by_arn_;  // Keys in lower case.
};

}  // namespace gruca::service
