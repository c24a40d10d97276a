// service/node_keeper.h
//
// Does to nodes what takes time, away from the loop: starts them, ends them, and when one is gone
// saves what is left of its log before the loop hears of it. What concerns one node happens in the
// order asked for; different nodes do not wait for each other, up to kNodeLanes of them.
//
// With the last node of a job goes what its nodes have uploaded and nobody has merged.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "cluster/cluster.h"
#include "service/job_board.h"
#include "service/telemetry/log_store.h"
#include "store/object_store.h"

namespace gruca::service {

// Makes the cluster, given whom to tell of nodes that are gone. The listener may be called from any
// thread and does not block for long.
using NodeListener = std::function<void(cluster::NodeGone)>;
using ClusterMaker = std::function<std::unique_ptr<cluster::Cluster>(NodeListener)>;

// What happened to nodes; called from the lanes.
struct NodeEvents {
    NodeListener lost;  // Gone, or could not be started; its log is saved.
    std::function<void(const std::string& node_id)> removed;  // Nothing of it runs any more.
    NodeListener stuck;                                       // A removal does not work.
};

constexpr std::size_t kNodeLanes = 4;
constexpr std::size_t kLaneTasksMax = 100'000;
// How often the end of a dead node's log is tried to be saved, and the pause between: on a full
// disk there may soon be room. Whatever else waits in the lane would need that disk too.
constexpr int kSaveLogTries = 150;
constexpr std::chrono::milliseconds kSaveLogPause{200};

class NodeKeeper {
  public:
    NodeKeeper(const ClusterMaker& make_cluster, const JobBoard& jobs, LogStore& logs,
               store::ObjectStore& store, const Clock& clock, NodeEvents events);
    ~NodeKeeper();  // Ends what is in progress, forgets what waits: a new service does it again.
    NodeKeeper(const NodeKeeper&) = delete;
    NodeKeeper& operator=(const NodeKeeper&) = delete;

    void launch(const spec::NodeConfig& config);
    // A removal that fails is told as stuck: control asks again.
    void remove(const std::string& node_id);
    // The node is gone or silent: saves its log, then tells.
    void give_up(const cluster::NodeGone& gone);

    std::vector<std::string> nodes() const { return cluster_->nodes(); }

  private:
    using Task = std::function<void()>;

    void enqueue(const std::string& node_id, Task task);
    void save_log(const std::string& node_id);
    void remove_parts(const std::string& node_id);

    const JobBoard& jobs_;
    LogStore& logs_;
    store::ObjectStore& store_;
    const Clock& clock_;
    const NodeEvents events_;
    std::atomic<bool> leaving_ = false;
    std::vector<std::unique_ptr<Queue<Task>>> lanes_;
    std::unique_ptr<cluster::Cluster> cluster_;
    std::vector<std::jthread> threads_;  // Last: they use all of the above.
};

}  // namespace gruca::service
