#include "service/job_board.h"

#include <mutex>

#include "base/text.h"

namespace gruca::service {

void JobBoard::publish(const control::Job& job) {
    auto copy = std::make_shared<const control::Job>(job);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < job.nodes.size(); ++i) {
        if (job.is_terminal()) {
            nodes_.erase(job.nodes[i].id);
        } else {
            nodes_[job.nodes[i].id] = {.job = job.spec.name, .index = i};
        }
    }
    name_by_arn_[to_lower(job.spec.arn)] = job.spec.name;
    jobs_[job.spec.name] = std::move(copy);
}

JobPtr JobBoard::find(const std::string& name) const {
    const std::shared_lock lock(mutex_);
    const auto found = jobs_.find(name);
    return found == jobs_.end() ? nullptr : found->second;
}

JobPtr JobBoard::find_by_arn(const std::string& arn) const {
    const std::shared_lock lock(mutex_);
    const auto found = name_by_arn_.find(to_lower(arn));
    return found == name_by_arn_.end() ? nullptr : jobs_.at(found->second);
}

std::optional<NodeOnBoard> JobBoard::find_node(const std::string& node_id) const {
    const std::shared_lock lock(mutex_);
    const auto found = nodes_.find(node_id);
    if (found == nodes_.end()) return std::nullopt;
    return NodeOnBoard{.job = jobs_.at(found->second.job), .index = found->second.index};
}

std::vector<JobPtr> JobBoard::all() const {
    return with_prefix("");
}

std::vector<JobPtr> JobBoard::with_prefix(const std::string& name_prefix) const {
    const std::shared_lock lock(mutex_);
    std::vector<JobPtr> found;
    for (auto it = jobs_.lower_bound(name_prefix); it != jobs_.end(); ++it) {
        if (!it->first.starts_with(name_prefix)) break;
        found.push_back(it->second);
    }
    return found;
}

}  // namespace gruca::service
