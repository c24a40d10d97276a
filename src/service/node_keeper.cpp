#include "service/node_keeper.h"

#include <bit>
#include <utility>

#include "base/boundary.h"
#include "base/log.h"
#include "spec/output_parts.h"

namespace gruca::service {
namespace {

// Nobody will merge what the job's nodes have uploaded any more. So it is at the latest when its
// last node is removed.
bool is_past_assembly(const control::Job& job) {
    return job.released_at || job.cause == control::EndCause::node_failed ||
           job.cause == control::EndCause::node_lost;
}

}  // namespace

bool is_worth_telling(int failures) {
    return std::has_single_bit(static_cast<unsigned>(failures));
}

NodeKeeper::NodeKeeper(const ClusterMaker& make_cluster, const JobBoard& jobs, LogStore& logs,
                       store::ObjectStore& store, const Clock& clock, NodeEvents events)
    : jobs_(jobs), logs_(logs), store_(store), clock_(clock), events_(std::move(events)) {
    for (std::size_t i = 0; i < kNodeLanes; ++i) {
        lanes_.push_back(std::make_unique<Queue<Task>>(kLaneTasksMax));
    }
    cluster_ = make_cluster([this](cluster::NodeGone gone) { give_up(gone); });
    for (auto& lane : lanes_) {
        threads_.emplace_back([&queue = *lane](std::stop_token stop) {
            while (const std::optional<Task> task = queue.pop()) {
                if (stop.stop_requested()) return;
                (*task)();
            }
        });
    }
    threads_.emplace_back([this](std::stop_token stop) { retry_held(stop); });
}

NodeKeeper::~NodeKeeper() {
    for (std::jthread& thread : threads_) thread.request_stop();
    for (auto& lane : lanes_) lane->close();
}

void NodeKeeper::enqueue(const std::string& node_id, Task task) {
    push(node_id, [this, node_id, task = std::move(task)] { run(node_id, task); });
}

void NodeKeeper::push(const std::string& node_id, Task task) {
    lanes_[std::hash<std::string>()(node_id) % lanes_.size()]->push(std::move(task));
}

// ---- in a lane: what concerns one node is always in the same ------------------------------------

void NodeKeeper::run(const std::string& node_id, const Task& task) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto held = held_.find(node_id); held != held_.end()) {
            held->second.tasks.push_back(task);
            return;
        }
    }
    if (const auto error = run_guarded(task)) {
        log_error("a task on node {} failed: {}", node_id, error->what());
    }
}

void NodeKeeper::hold(const std::string& node_id, Task retry) {
    const std::lock_guard lock(mutex_);
    held_[node_id].tasks.push_back(std::move(retry));
    changed_.notify_all();
}

// The first may hold the node again; the others are then held behind it.
void NodeKeeper::run_held(const std::string& node_id) {
    std::deque<Task> tasks;
    {
        const std::lock_guard lock(mutex_);
        tasks = std::move(held_[node_id].tasks);
        held_.erase(node_id);
    }
    for (const Task& task : tasks) run(node_id, task);
}

// ---- beside the lanes ---------------------------------------------------------------------------

void NodeKeeper::retry_held(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, stop, [this] { return !held_.empty(); });
            changed_.wait_for(lock, stop, kSaveLogPause, [] { return false; });
        }
        for (const std::string& node_id : held_nodes()) {
            push(node_id, [this, node_id] { run_held(node_id); });
        }
    }
}

std::vector<std::string> NodeKeeper::held_nodes() {
    std::vector<std::string> found;
    const std::lock_guard lock(mutex_);
    for (auto& [node_id, held] : held_) {
        if (!std::exchange(held.is_in_lane, true)) found.push_back(node_id);
    }
    return found;
}

// ---- tasks --------------------------------------------------------------------------------------

void NodeKeeper::launch(const spec::NodeConfig& config) {
    enqueue(config.node_id, [this, config] {
        const auto error = run_guarded([&] { cluster_->launch(config); });
        if (!error) return events_.launched(config.node_id);
        log_error("node {} cannot be started: {}", config.node_id, error->what());
        events_.lost(
            {.node_id = config.node_id, .why = "its agent cannot be started: " + error->message()});
    });
}

void NodeKeeper::remove(const std::string& node_id) {
    enqueue(node_id, [this, node_id] { try_removal(node_id); });
}

void NodeKeeper::try_removal(const std::string& node_id) {
    if (const auto error = run_guarded([&] { cluster_->remove(node_id); })) {
        note_stuck(node_id, *error);
        return events_.stuck({.node_id = node_id, .why = error->message()});
    }
    {
        const std::lock_guard lock(mutex_);
        removals_failed_.erase(node_id);
    }
    if (const auto error = run_guarded([&] { remove_parts(node_id); })) {
        log_warning("parts of outputs stay in the store: {}", error->what());
    }
    events_.removed(node_id);
}

void NodeKeeper::note_stuck(const std::string& node_id, const Error& error) {
    int failures = 0;
    {
        const std::lock_guard lock(mutex_);
        failures = ++removals_failed_[node_id];
    }
    if (!is_worth_telling(failures)) return;
    log_error("node {} cannot be removed now, which was tried {} times and is tried on: {}",
              node_id, failures, error.what());
}

void NodeKeeper::give_up(const cluster::NodeGone& gone) {
    enqueue(gone.node_id, [this, gone] { try_save(gone, 1); });
}

void NodeKeeper::try_save(const cluster::NodeGone& gone, int tries) {
    const std::optional<Error> error = run_guarded([&] { save_log(gone.node_id); });
    if (error && tries == 1) {
        log_warning("the log of node {} is not saved yet: {}", gone.node_id, error->what());
    }
    if (error && tries < kSaveLogTries) {
        return hold(gone.node_id, [this, gone, tries] { try_save(gone, tries + 1); });
    }
    if (error) {
        log_error("the end of the log of node {} is lost: {}", gone.node_id, error->what());
    }
    events_.lost(gone);
}

void NodeKeeper::remove_parts(const std::string& node_id) {
    const std::optional<NodeOnBoard> node = jobs_.find_node(node_id);
    if (!node || !is_past_assembly(*node->job)) return;
    const std::string parts = spec::parts_prefix(node->job->spec.name);
    std::vector<std::string> keys;
    store_.for_each(parts, [&](const store::ObjectInfo& object) { keys.push_back(object.key); });
    for (const std::string& key : keys) store_.remove(key);
    store_.remove_directory(parts);  // Of one that was killed before its part was there.
}

void NodeKeeper::save_log(const std::string& node_id) {
    const std::optional<NodeOnBoard> node = jobs_.find_node(node_id);
    if (!node) return;
    const LogName log{.job = node->job->spec.name, .host = node->node().host};
    if (const auto left = cluster_->left_log(node_id)) {
        logs_.append_rest_of(*left, log, clock_.now());
    }
    logs_.sync(log);
}

}  // namespace gruca::service
