// cluster/last_kill.h
//
// Ends what an agent and a keeper should have ended, from what they left on disk, and says what
// does not end although it was killed: it hangs in the kernel, holds files, ports and memory, and
// goes only when what it waits for answers or the machine is restarted. It never runs an
// instruction of its own again.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace gruca::cluster {

constexpr std::chrono::seconds kKillPatience{5};

// Kills the process and waits. Throws unavailable when it, or something below it, is still there:
// "process 4711 (python3) hangs in the kernel in request_wait_answer, fuse_read".
void end_process(const UniqueFd& process, pid_t pid, std::chrono::milliseconds patience);

// The process or a descendant of it that hangs, in those words; "" when none is found.
std::string describe_hanging(pid_t pid, const std::filesystem::path& proc = "/proc");

// `record` has the path of a control group a line; only those below `root` are touched, and nothing
// happens where it or they do not exist. Removing throws when one stays: something runs in it.
constexpr const char* kGroups = "/sys/fs/cgroup";
void kill_groups(const std::filesystem::path& record, const std::filesystem::path& root = kGroups);
void remove_groups(const std::filesystem::path& record,
                   const std::filesystem::path& root = kGroups);

}  // namespace gruca::cluster
