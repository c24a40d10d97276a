#include "service/job_index.h"

#include <iterator>

#include "base/text.h"

namespace gruca::service {
namespace {

constexpr std::array kOrders = {JobOrder::creation, JobOrder::name, JobOrder::status};

bool matches(const JobSummary& job, const JobQuery& query) {
    return (!query.created_after || job.created > *query.created_after) &&
           (!query.created_before || job.created < *query.created_before) &&
           (!query.modified_after || job.modified > *query.modified_after) &&
           (!query.modified_before || job.modified < *query.modified_before) &&
           (query.status.empty() || job.status == query.status) &&
           job.name.find(query.name_contains) != std::string::npos;
}

}  // namespace

JobPlace place_of(const JobSummary& job, JobOrder order) {
    switch (order) {
        case JobOrder::creation:
            break;
        case JobOrder::name:
            return {job.name, 0, job.number};
        case JobOrder::status:
            return {job.status, 0, job.number};
    }
    return {"", to_ms(job.created), job.number};
}

void JobIndex::put(JobSummary job) {
    const auto [found, is_new] = jobs_.try_emplace(job.name);
    JobSummary& kept = found->second;
    for (const JobOrder order : kOrders) {
        Order& places = orders_.at(static_cast<std::size_t>(order));
        JobPlace place = place_of(job, order);
        if (!is_new && place == place_of(kept, order)) continue;
        if (!is_new) places.erase(place_of(kept, order));
        places.emplace(std::move(place), &kept);
    }
    if (is_new) name_by_arn_[to_lower(job.arn)] = job.name;
    kept = std::move(job);
}

const JobSummary* JobIndex::find(const std::string& name) const {
    const auto found = jobs_.find(name);
    return found == jobs_.end() ? nullptr : &found->second;
}

const JobSummary* JobIndex::find_by_arn(const std::string& arn) const {
    const JobSummary* same = find(arn.substr(arn.rfind('/') + 1));
    if (same && same->arn == arn) return same;
    const auto found = name_by_arn_.find(to_lower(arn));
    return found == name_by_arn_.end() ? nullptr : find(found->second);
}

std::vector<JobSummary> JobIndex::with_prefix(const std::string& name_prefix) const {
    std::vector<JobSummary> found;
    for (auto it = jobs_.lower_bound(name_prefix); it != jobs_.end(); ++it) {
        if (!it->first.starts_with(name_prefix)) break;
        found.push_back(it->second);
    }
    return found;
}

template <class Iterator>
JobPage JobIndex::page_of(Iterator begin, Iterator end, const JobQuery& query) {
    JobPage page;
    for (; begin != end; ++begin) {
        const JobSummary& job = *begin->second;
        if (!matches(job, query)) continue;
        page.more = page.jobs.size() == query.count_max;
        if (page.more) break;
        page.jobs.push_back(job);
    }
    return page;
}

JobPage JobIndex::list(const JobQuery& query) const {
    const Order& places = orders_.at(static_cast<std::size_t>(query.order));
    if (query.descending) {
        const auto end = query.after ? places.lower_bound(*query.after) : places.end();
        return page_of(std::make_reverse_iterator(end), places.rend(), query);
    }
    return page_of(query.after ? places.upper_bound(*query.after) : places.begin(), places.end(),
                   query);
}

}  // namespace gruca::service
