// agent/node_cgroups.h
//
// Accounting of what runs on a node, by the kernel's control groups, version 1 or 2: memory and
// processor time used, a limit on the number of processes, and whether the kernel killed for want
// of memory. Where no group can be made (no root, no cgroup file system) nothing is counted and
// nothing fails.
//
// Owned by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gruca::agent {

constexpr int kProcessesMax = 32768;  // In one node. Stops a fork bomb, hinders nobody else.

struct Usage {
    std::optional<std::uint64_t> memory_bytes_max;
    std::optional<double> processor_seconds;
    std::uint64_t kills_for_memory = 0;
};

class NodeCgroups {
  public:
    // Makes the groups "gruca-<name>" and writes their paths, a line each, into `record`, so that
    // somebody else can remove them when this process dies.
    NodeCgroups(const std::string& name, const std::filesystem::path& record,
                const std::filesystem::path& root = "/sys/fs/cgroup");
    ~NodeCgroups();  // Removes them; nothing may run in them any more.
    NodeCgroups(const NodeCgroups&) = delete;
    NodeCgroups& operator=(const NodeCgroups&) = delete;

    void add(pid_t pid) const;
    Usage usage() const;
    const std::vector<std::filesystem::path>& groups() const { return groups_; }

  private:
    std::optional<std::string> read(const char* name) const;

    std::vector<std::filesystem::path> groups_;
};

}  // namespace gruca::agent
