#include "agent/node_cgroups.h"

#include <unistd.h>

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

}  // namespace

NodeCgroups::NodeCgroups(const std::string& name, const fs::path& record, const fs::path& root) {
    std::error_code failure;
    std::vector<fs::path> places;
    if (fs::exists(root / "cgroup.controllers", failure)) {
        places = {root};
    } else {
        for (const char* controller : {"memory", "pids", "cpuacct"}) {
            if (fs::exists(root / controller / kProcs, failure))
                places.push_back(root / controller);
        }
    }
    std::string lines;
    for (const fs::path& place : places) {
        const fs::path group = place / ("gruca-" + name);
        if (!fs::create_directory(group, failure) && !fs::is_directory(group, failure)) continue;
        groups_.push_back(group);
        lines += group.string() + "\n";
        if (fs::exists(group / "pids.max", failure)) {
            set(group / "pids.max", std::to_string(kProcessesMax));
        }
    }
    replace_file(record, lines);
    if (groups_.empty()) log_info("no control groups here: nothing is accounted");
}

NodeCgroups::~NodeCgroups() {
    for (const fs::path& group : groups_) ::rmdir(group.c_str());
}

void NodeCgroups::add(pid_t pid) const {
    for (const fs::path& group : groups_) {
        if (!set(group / kProcs, std::to_string(pid))) {
            log_warning("the node is not accounted in {}", group.string());
        }
    }
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
    return usage;
}

}  // namespace gruca::agent
