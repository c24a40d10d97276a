// agent/node_cgroups.h
//
// What runs on a node, in the kernel's control groups, version 1 or 2: memory and processor time
// used, limits on memory and on the number of processes, whether the kernel killed for want of
// memory, and a way to kill everything at once. All nodes of this machine lie below one group,
// "gruca", with limits of its own. Where no group can be made (no root, no cgroup file system)
// nothing is counted or limited, and nothing fails.
//
// Owned by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "spec/node.h"

namespace gruca::agent {

constexpr const char* kAllNodes = "gruca";  // The group of the groups.

struct Usage {
    std::optional<std::uint64_t> memory_bytes_max;
    std::optional<double> processor_seconds;
    std::uint64_t kills_for_memory = 0;
    // The limit that was reached, if one is known: the node's own, or that of all nodes together.
    std::optional<std::uint64_t> memory_limit_bytes = {};
    bool limit_is_shared = false;
};

// What this machine has; limits that are shares of it are made of this.
struct MachineSize {
    std::uint64_t memory_bytes = 0;
    std::uint64_t processes_max = 0;  // Process ids that exist.
    int cores = 1;
};
MachineSize size_of_this_machine();

// However many nodes there are, half of the process ids are for the rest of the machine, and one
// node gets no more than half of that.
int processes_for_all(const MachineSize& machine);
int processes_for_one(const MachineSize& machine, const spec::NodeLimits& limits);
// Nothing: no limit. Never less than half of the machine's memory.
std::optional<std::uint64_t> memory_for_all(const MachineSize& machine,
                                            const spec::NodeLimits& limits);

struct CgroupOptions {
    std::string name;  // Of the node's groups.
    // Their paths, a line each, for whoever outlives this process; also of those that cannot be
    // made.
    std::filesystem::path record;
    spec::NodeLimits limits = {};
    MachineSize machine = size_of_this_machine();
    std::filesystem::path root = "/sys/fs/cgroup";
};

class NodeCgroups {
  public:
    explicit NodeCgroups(CgroupOptions options);
    ~NodeCgroups();  // Removes them; nothing may run in them any more.
    NodeCgroups(const NodeCgroups&) = delete;
    NodeCgroups& operator=(const NodeCgroups&) = delete;

    void add(pid_t pid) const;
    Usage usage() const;
    // Everything in the groups, with no way to fork out of it; false where the kernel has no such
    // thing. For when the keeper does not do it.
    bool kill() const;
    const std::vector<std::filesystem::path>& groups() const { return groups_; }

  private:
    std::filesystem::path group_in(const std::filesystem::path& place) const;
    void make(const std::filesystem::path& place);
    std::optional<std::string> read(const char* name) const;

    const CgroupOptions options_;
    std::vector<std::filesystem::path> groups_;
};

}  // namespace gruca::agent
