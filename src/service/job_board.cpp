#include "service/job_board.h"

#include <mutex>

#include "base/error.h"

namespace gruca::service {

JobSummary summary_of(const control::Job& job) {
    return {.name = job.spec.name,
            .number = job.number,
            .arn = job.spec.arn,
            .instances = job.spec.instance_count,
            .status = job.status,
            .secondary = job.secondary,
            .over = job.is_settled(),
            .created = job.created,
            .modified = job.modified,
            .training_started = job.training_started,
            .ended = job.ended};
}

void JobBoard::publish(const control::Job& job) {
    const auto copy = std::make_shared<const control::Job>(job);
    const bool over = job.is_settled();
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < job.nodes.size(); ++i) {
        if (over) {
            nodes_.erase(job.nodes[i].id);
        } else {
            nodes_[job.nodes[i].id] = {.job = job.spec.name, .index = i};
        }
    }
    index_.put(summary_of(job));
    if (!over) {
        live_[job.spec.name] = copy;
        return;
    }
    live_.erase(job.spec.name);
    const std::lock_guard recalled(recalled_mutex_);
    ++changes_of_over_;
    remember(copy);
}

void JobBoard::publish_over(std::vector<JobSummary> jobs) {
    const std::lock_guard lock(mutex_);
    index_.put_new(std::move(jobs));
}

JobPtr JobBoard::find(const std::string& name) const {
    {
        const std::shared_lock lock(mutex_);
        if (JobPtr live = find_live(name)) return live;
        if (index_.find(name) == nullptr) return nullptr;
    }
    return recall(name);
}

JobPtr JobBoard::find_live(const std::string& name) const {
    const auto found = live_.find(name);
    return found == live_.end() ? nullptr : found->second;
}

// A job that is over.
JobPtr JobBoard::recall(const std::string& name) const {
    std::uint64_t before = 0;
    {
        const std::lock_guard lock(recalled_mutex_);
        if (const auto found = recalled_by_name_.find(name); found != recalled_by_name_.end()) {
            recalled_.splice(recalled_.begin(), recalled_, found->second);
            return recalled_.front();
        }
        before = changes_of_over_;
    }
    const std::optional<std::string> json = database_.find_job(name);
    if (!json) throw Error(ErrorCode::data_loss, "the database has lost the job " + name);
    auto job = std::make_shared<const control::Job>(control::Job::from_json(Json::parse(*json)));
    const std::lock_guard lock(recalled_mutex_);
    if (before == changes_of_over_) remember(job);
    return job;
}

void JobBoard::remember(const JobPtr& job) const {
    const std::string& name = job->spec.name;
    if (const auto found = recalled_by_name_.find(name); found != recalled_by_name_.end()) {
        recalled_.erase(found->second);
    }
    recalled_.push_front(job);
    recalled_by_name_[name] = recalled_.begin();
    if (recalled_.size() <= kRecalledMax) return;
    recalled_by_name_.erase(recalled_.back()->spec.name);
    recalled_.pop_back();
}

std::optional<std::string> JobBoard::find_name_by_arn(const std::string& arn) const {
    const std::shared_lock lock(mutex_);
    const JobSummary* found = index_.find_by_arn(arn);
    return found ? std::optional(found->name) : std::nullopt;
}

JobPtr JobBoard::find_by_arn(const std::string& arn) const {
    const auto name = find_name_by_arn(arn);
    return name ? find(*name) : nullptr;
}

std::optional<NodeOnBoard> JobBoard::find_node(const std::string& node_id) const {
    const std::shared_lock lock(mutex_);
    const auto found = nodes_.find(node_id);
    if (found == nodes_.end()) return std::nullopt;
    return NodeOnBoard{.job = live_.at(found->second.job), .index = found->second.index};
}

std::optional<JobOnBoard> JobBoard::find_listed(const std::string& name) const {
    const std::shared_lock lock(mutex_);
    const JobSummary* found = index_.find(name);
    if (found == nullptr) return std::nullopt;
    return JobOnBoard{.summary = *found, .live = find_live(name)};
}

std::vector<JobOnBoard> JobBoard::with_prefix(const std::string& name_prefix) const {
    const std::shared_lock lock(mutex_);
    std::vector<JobOnBoard> found;
    for (JobSummary& summary : index_.with_prefix(name_prefix)) {
        JobPtr live = find_live(summary.name);
        found.push_back({.summary = std::move(summary), .live = std::move(live)});
    }
    return found;
}

JobPage JobBoard::list(const JobQuery& query) const {
    const std::shared_lock lock(mutex_);
    return index_.list(query);
}

}  // namespace gruca::service
