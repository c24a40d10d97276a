// cluster/local_cluster.h
//
// Nodes as processes of this machine: one `gruca-agent` a node, in a session of its own, so that it
// outlives the service. Everything of a node lies in `<nodes_dir>/<node id>/`, as
// docs/formats/node-directory.md describes; a new LocalCluster over the same directory adopts the
// agents that run there, by pid and start time, so that a reused pid is never mistaken for one.
// agent.lock is held from before an agent exists until it ends, so a node whose agent was started
// by a cluster that died at that moment gets no second one.
//
// Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/process_id.h"
#include "cluster/cluster.h"
#include "cluster/job_network.h"
#include "cluster/trash.h"

namespace gruca::cluster {

struct LocalClusterOptions {
    std::filesystem::path agent_program;  // gruca-agent
    std::filesystem::path nodes_dir;      // Made when it is missing.
    // Kept in being for the nodes, and removed with this object when there are none. Outlives it.
    const JobNetwork* network = nullptr;
};

class LocalCluster final : public Cluster {
  public:
    // `gone` is called from a thread of this object, once for each node that ends without remove(),
    // also for one found dead at the start. It must not call back into this object.
    LocalCluster(LocalClusterOptions options, std::function<void(NodeGone)> gone);
    ~LocalCluster() override;  // The agents run on.

    // config.work_dir is set here: "<nodes_dir>/<node id>/work".
    void launch(const spec::NodeConfig& config) override;
    void remove(const std::string& node_id) override;
    std::optional<std::string> left_log(const std::string& node_id) const override;
    std::vector<std::string> nodes() const override;

  private:
    struct Watched {
        UniqueFd process;  // Closed: gone.
        pid_t pid = 0;
        std::string why = {};  // Once it is gone.
        bool reported = false;
    };

    std::filesystem::path directory_of(const std::string& node_id) const;
    void adopt();
    void start_agent(const std::string& node_id);
    Watched forget(const std::string& node_id);
    void watch(std::stop_token stop);
    std::vector<NodeGone> newly_gone();
    void wake() const;

    const LocalClusterOptions options_;
    const std::function<void(NodeGone)> gone_;
    mutable std::mutex mutex_;  // Guards watched_ and stuck_.
    std::map<std::string, Watched> watched_;
    std::set<std::string> stuck_;  // A removal of them has failed.
    Trash trash_;
    UniqueFd wake_fd_;
    std::jthread watcher_;  // Last: it uses all of the above.
};

}  // namespace gruca::cluster
