#include "agent/node_cgroups.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/replace_file.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProcs = "cgroup.procs";

// The number after `key` in lines of "key number"; with an empty key, the whole text.
std::optional<std::uint64_t> number_in(const std::optional<std::string>& text,
                                       const std::string& key) {
    if (!text) return std::nullopt;
    for (const std::string& line : split(*text, '\n')) {
        if (!key.empty() && !line.starts_with(key + " ")) continue;
        const auto number = parse_int(trim(std::string_view(line).substr(key.size())));
        if (number && *number >= 0) return static_cast<std::uint64_t>(*number);
    }
    return std::nullopt;
}

// cgroup files take exactly one write, and no O_CREAT.
bool set(const fs::path& file, const std::string& value) {
    std::ofstream out(file);
    out << value << std::flush;
    return out.good();
}

void set_if_there(const fs::path& file, const std::string& value) {
    std::error_code failure;
    if (fs::exists(file, failure) && !set(file, value)) {
        log_warning("{} does not take {}", file.string(), value);
    }
}

void limit(const fs::path& group, std::optional<std::uint64_t> memory_bytes, int processes) {
    set_if_there(group / "pids.max", std::to_string(processes));
    if (!memory_bytes) return;
    for (const char* file : {"memory.limit_in_bytes", "memory.max"}) {
        set_if_there(group / file, std::to_string(*memory_bytes));
    }
}

// The hierarchies that there are: version 2 alone, or one for each controller and, beside them, one
// of version 2 without any, which can kill all the same.
std::vector<fs::path> hierarchies(const fs::path& root) {
    std::error_code failure;
    if (fs::exists(root / "cgroup.controllers", failure)) return {root};
    std::vector<fs::path> found;
    for (const char* controller : {"memory", "pids", "cpuacct", "cpu", "unified"}) {
        if (fs::exists(root / controller / kProcs, failure)) found.push_back(root / controller);
    }
    return found;
}

std::uint64_t number_of(const fs::path& file, std::uint64_t otherwise) {
    std::optional<std::string> text;
    run_guarded([&] { text = read_file(file); });
    return number_in(text, "").value_or(otherwise);
}

}  // namespace

MachineSize size_of_this_machine() {
    constexpr std::uint64_t kPidsByDefault = 32768;
    return {.memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
            .processes_max = std::min(number_of("/proc/sys/kernel/pid_max", kPidsByDefault),
                                      number_of("/proc/sys/kernel/threads-max", kPidsByDefault)),
            .cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))};
}

int processes_for_all(const MachineSize& machine) {
    return static_cast<int>(machine.processes_max / 2);
}

int processes_for_one(const MachineSize& machine, const spec::NodeLimits& limits) {
    return std::min(limits.processes, processes_for_all(machine) / 2);
}

std::optional<std::uint64_t> memory_for_all(const MachineSize& machine,
                                            const spec::NodeLimits& limits) {
    if (limits.memory_reserve_bytes == 0) return std::nullopt;
    return machine.memory_bytes - std::min(limits.memory_reserve_bytes, machine.memory_bytes / 2);
}

NodeCgroups::NodeCgroups(CgroupOptions options) : options_(std::move(options)) {
    const std::vector<fs::path> places = hierarchies(options_.root);
    std::string lines;
    for (const fs::path& place : places) lines += group_in(place).string() + "\n";
    replace_file(options_.record, lines);  // First, so that whoever is killed here leaves nothing.
    for (const fs::path& place : places) make(place);
    if (groups_.empty()) log_info("no control groups here: nothing is accounted");
}

fs::path NodeCgroups::group_in(const fs::path& place) const {
    return place / kAllNodes / options_.name;
}

void NodeCgroups::make(const fs::path& place) {
    constexpr int kTries = 3;  // The last node to end may remove the group of all in between.
    constexpr int kCpuSharesByDefault = 1024;
    const fs::path group = group_in(place), all = group.parent_path();
    std::error_code failure;
    for (int i = 0; i < kTries && !fs::is_directory(group, failure); ++i) {
        fs::create_directory(all, failure);
        fs::create_directory(group, failure);
    }
    if (!fs::is_directory(group, failure)) return;
    groups_.push_back(group);
    for (const fs::path& parent : {place, all}) {  // Version 2 passes controllers on by request.
        for (const char* controller : {"+memory", "+pids", "+cpu"}) {
            if (fs::exists(place / "cgroup.controllers", failure))
                set(parent / "cgroup.subtree_control", controller);
        }
    }
    const MachineSize& machine = options_.machine;
    const spec::NodeLimits& limits = options_.limits;
    limit(all, memory_for_all(machine, limits), processes_for_all(machine));
    limit(group, limits.memory_bytes == 0 ? std::nullopt : std::optional(limits.memory_bytes),
          processes_for_one(machine, limits));
    // A thousand processes of one node weigh as much as one of another, and all nodes together as
    // much as one process for each core.
    set_if_there(all / "cpu.shares", std::to_string(kCpuSharesByDefault * machine.cores));
}

NodeCgroups::~NodeCgroups() {
    for (const fs::path& group : groups_) {
        ::rmdir(group.c_str());
        ::rmdir(group.parent_path().c_str());  // Unless other nodes are in it.
    }
}

void NodeCgroups::add(pid_t pid) const {
    for (const fs::path& group : groups_) {
        if (!set(group / kProcs, std::to_string(pid))) {
            log_warning("the node is not accounted in {}", group.string());
        }
    }
}

bool NodeCgroups::kill() const {
    std::error_code failure;
    bool killed = false;
    for (const fs::path& group : groups_) {
        const fs::path file = group / "cgroup.kill";
        killed = (fs::exists(file, failure) && set(file, "1")) || killed;
    }
    return killed;
}

std::optional<std::string> NodeCgroups::read(const char* name) const {
    std::error_code failure;
    for (const fs::path& group : groups_) {
        if (!fs::exists(group / name, failure)) continue;
        std::optional<std::string> text;
        run_guarded([&] { text = read_file(group / name); });
        return text;
    }
    return std::nullopt;
}

Usage NodeCgroups::usage() const {
    constexpr double kNanoseconds = 1e-9, kMicroseconds = 1e-6;
    Usage usage;
    usage.memory_bytes_max = number_in(read("memory.peak"), "");
    if (!usage.memory_bytes_max) {
        usage.memory_bytes_max = number_in(read("memory.max_usage_in_bytes"), "");
    }
    if (const auto v1 = number_in(read("cpuacct.usage"), "")) {
        usage.processor_seconds = static_cast<double>(*v1) * kNanoseconds;
    } else if (const auto v2 = number_in(read("cpu.stat"), "usage_usec")) {
        usage.processor_seconds = static_cast<double>(*v2) * kMicroseconds;
    }
    const auto v2 = number_in(read("memory.events"), "oom_kill");
    usage.kills_for_memory =
        v2 ? *v2 : number_in(read("memory.oom_control"), "oom_kill").value_or(0);
    const spec::NodeLimits& limits = options_.limits;
    usage.limit_is_shared = limits.memory_bytes == 0;
    usage.memory_limit_bytes = usage.limit_is_shared ? memory_for_all(options_.machine, limits)
                                                     : std::optional(limits.memory_bytes);
    return usage;
}

}  // namespace gruca::agent
