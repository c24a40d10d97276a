// service/node_keeper.h
//
// Does to nodes what takes time, away from the loop: starts them, ends them, and when one is gone
// saves what is left of its log before the loop hears of it. What concerns one node happens in the
// order asked for; different nodes do not wait for each other, up to kNodeLanes of them. A node
// whose log cannot be saved now is held meanwhile, and takes no lane.
//
// With the last node of a job goes what its nodes have uploaded and nobody has merged.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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
    std::function<void(const std::string& node_id)> launched;  // Its agent has been started.
    NodeListener lost;  // Gone, or could not be started; its log is saved.
    std::function<void(const std::string& node_id)> removed;  // Nothing of it runs any more.
    NodeListener stuck;                                       // A removal does not work.
};

constexpr std::size_t kNodeLanes = 4;
constexpr std::size_t kLaneTasksMax = 100'000;
// How often the end of a dead node's log is tried to be saved, and the pause between: on a full
// disk there may soon be room.
constexpr int kSaveLogTries = 150;
constexpr std::chrono::milliseconds kSaveLogPause{200};

// Whether the `failures`-th failure in a row is worth a line in the log: the first is, and then
// each after twice as many.
bool is_worth_telling(int failures);

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
    // A node whose log is to be saved again, and what is asked of it meanwhile.
    struct Held {
        std::deque<Task> tasks = {};  // The first is the one to try again.
        bool is_in_lane = false;
    };

    void enqueue(const std::string& node_id, Task task);
    void push(const std::string& node_id, Task task);
    void run(const std::string& node_id, const Task& task);
    void hold(const std::string& node_id, Task retry);
    void run_held(const std::string& node_id);
    void retry_held(const std::stop_token& stop);
    std::vector<std::string> held_nodes();
    void try_removal(const std::string& node_id);
    void try_save(const cluster::NodeGone& gone, int tries);
    void note_stuck(const std::string& node_id, const Error& error);
    void save_log(const std::string& node_id);
    void remove_parts(const std::string& node_id);

    const JobBoard& jobs_;
    LogStore& logs_;
    store::ObjectStore& store_;
    const Clock& clock_;
    const NodeEvents events_;
    std::vector<std::unique_ptr<Queue<Task>>> lanes_;
    std::mutex mutex_;  // Guards the two maps below; not held while a lane is full.
    std::condition_variable_any changed_;
    std::map<std::string, Held> held_;
    std::map<std::string, int> removals_failed_;  // Of nodes that cannot be removed.
    std::unique_ptr<cluster::Cluster> cluster_;
    std::vector<std::jthread> threads_;  // Last: they use all of the above.
};

}  // namespace gruca::service
