#include "service/node_keeper.h"

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
                if (const auto error = run_guarded(*task)) {
                    log_error("a task on a node failed: {}", error->what());
                }
            }
        });
    }
}

NodeKeeper::~NodeKeeper() {
    leaving_ = true;
    for (std::jthread& thread : threads_) thread.request_stop();
    for (auto& lane : lanes_) lane->close();
}

void NodeKeeper::enqueue(const std::string& node_id, Task task) {
    lanes_[std::hash<std::string>()(node_id) % lanes_.size()]->push(std::move(task));
}

void NodeKeeper::launch(const spec::NodeConfig& config) {
    enqueue(config.node_id, [this, config] {
        const auto error = run_guarded([&] { cluster_->launch(config); });
        if (!error) return;
        log_error("node {} cannot be started: {}", config.node_id, error->what());
        events_.lost(
            {.node_id = config.node_id, .why = "its agent cannot be started: " + error->message()});
    });
}

void NodeKeeper::remove(const std::string& node_id) {
    enqueue(node_id, [this, node_id] {
        if (const auto error = run_guarded([&] { cluster_->remove(node_id); })) {
            log_error("node {} cannot be removed now: {}", node_id, error->what());
            return events_.stuck({.node_id = node_id, .why = error->message()});
        }
        if (const auto error = run_guarded([&] { remove_parts(node_id); })) {
            log_warning("parts of outputs stay in the store: {}", error->what());
        }
        events_.removed(node_id);
    });
}

void NodeKeeper::give_up(const cluster::NodeGone& gone) {
    enqueue(gone.node_id, [this, gone] {
        const auto save = [&] { return run_guarded([&] { save_log(gone.node_id); }); };
        std::optional<Error> error = save();
        if (error)
            log_warning("the log of node {} is not saved yet: {}", gone.node_id, error->what());
        for (int tries = 1; error && tries < kSaveLogTries; ++tries) {
            std::this_thread::sleep_for(kSaveLogPause);
            if (leaving_) return;  // The next service finds the node gone as well.
            error = save();
        }
        if (error)
            log_error("the end of the log of node {} is lost: {}", gone.node_id, error->what());
        events_.lost(gone);
    });
}

void NodeKeeper::remove_parts(const std::string& node_id) {
    const std::optional<NodeOnBoard> node = jobs_.find_node(node_id);
    if (!node || !is_past_assembly(*node->job)) return;
    std::vector<std::string> keys;
    store_.for_each(spec::parts_prefix(node->job->spec.name),
                    [&](const store::ObjectInfo& object) { keys.push_back(object.key); });
    for (const std::string& key : keys) store_.remove(key);
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
