// cluster/cluster.h
//
// Where nodes come from. A Cluster starts the agent of a node and says when that agent is gone; it
// knows nothing of jobs. LocalCluster starts agents as processes of this machine; Slurm comes
// later.
//
// Nodes outlive the service: a new Cluster over the same directory finds the agents that an earlier
// one started and watches them again.
//
// Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "spec/node.h"

namespace gruca::cluster {

struct NodeGone {
    std::string node_id;
    std::string why;  // For people: "its agent was killed by signal 9 (Killed)"
};

class Cluster {
  public:
    virtual ~Cluster() = default;

    // Starts the node's agent, unless it runs already: a second launch of a node does nothing. A
    // node that has been launched and is gone is reported gone again. Throws when it cannot be
    // started.
    virtual void launch(const spec::NodeConfig& config) = 0;

    // Ends the node and everything that runs on it, and forgets it. Returns when nothing of it runs
    // and its directory is out of the way; what it holds is deleted soon after. An unknown node is
    // fine. Throws when that does not work, as when a process hangs in the kernel, with words for
    // people; then it may be asked for again, and from the second time on does not wait.
    virtual void remove(const std::string& node_id) = 0;

    // Of a node that is gone or given up: ends what still runs of it, so that its log grows no
    // more. Returns the path of that log, all its bytes from the beginning, or nothing.
    virtual std::optional<std::string> left_log(const std::string& node_id) const = 0;

    virtual std::vector<std::string> nodes() const = 0;
};

}  // namespace gruca::cluster
