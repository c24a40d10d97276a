#include "cluster/last_kill.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/process_id.h"
#include "base/text.h"

namespace gruca::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kGroupPatience{1};  // For all groups of a node.
constexpr std::chrono::milliseconds kGroupPoll{10};
constexpr std::size_t kFramesMax = 3;  // Of its stack in the kernel: what it waits for.

std::string content_of(const fs::path& file) {
    std::ifstream in(file);  // Sizes of these files are not known before they are read.
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Seen {
    std::string name;
    char state = '?';
    pid_t parent = 0;
};

// "4711 (a name) S 1 …"; the name may hold anything.
std::optional<Seen> seen_in(const std::string& stat) {
    const std::size_t open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close + 4 > stat.size()) {
        return std::nullopt;
    }
    const auto parent = parse_int(split(std::string_view(stat).substr(close + 4), ' ')[0]);
    return Seen{.name = repair_utf8(stat.substr(open + 1, close - open - 1)),
                .state = stat[close + 2],
                .parent = static_cast<pid_t>(parent.value_or(0))};
}

std::map<pid_t, Seen> all_processes(const fs::path& proc) {
    std::map<pid_t, Seen> all;
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(proc, failure)) {
        const auto pid = parse_int(entry.path().filename().string());
        if (!pid) continue;
        if (auto seen = seen_in(content_of(entry.path() / "stat"))) {
            all.emplace(static_cast<pid_t>(*pid), std::move(*seen));
        }
    }
    return all;
}

// "[<0>] request_wait_answer+0x123/0x240" -> "request_wait_answer"
std::string function_in(const std::string& line) {
    const std::size_t from = line.find("] ");
    if (from == std::string::npos) return "";
    return line.substr(from + 2, line.find('+', from) - from - 2);
}

// Where in the kernel; empty when this user may not know.
std::string place_of(const fs::path& process) {
    std::string text;
    std::size_t frames = 0;
    for (const std::string& line : split(content_of(process / "stack"), '\n')) {
        const std::string function = function_in(line);
        if (function.empty() || frames++ == kFramesMax) break;
        text += (text.empty() ? "" : ", ") + function;
    }
    if (!text.empty()) return text;
    const std::string wchan = content_of(process / "wchan");
    return wchan == "0" ? "" : wchan;
}

std::vector<fs::path> groups_in(const fs::path& record, const fs::path& root) {
    std::vector<fs::path> groups;
    for (const std::string& path : split(content_of(record), '\n')) {
        if (path.starts_with(root.string() + "/")) groups.emplace_back(path);
    }
    return groups;
}

}  // namespace

std::string describe_hanging(pid_t pid, const fs::path& proc) {
    const std::map<pid_t, Seen> all = all_processes(proc);
    std::vector<pid_t> family = {pid};
    for (std::size_t i = 0; i < family.size(); ++i) {
        for (const auto& [other, seen] : all) {
            if (seen.parent == family[i] && other != family[i]) family.push_back(other);
        }
    }
    // Process 1 of the node only waits for what hangs, which comes after it.
    for (auto member = family.rbegin(); member != family.rend(); ++member) {
        const auto found = all.find(*member);
        if (found == all.end() || found->second.state == 'Z') continue;
        const std::string id = std::to_string(*member);
        const std::string place = place_of(proc / id);
        return "process " + id + " (" + found->second.name + ") hangs in the kernel" +
               (place.empty() ? "" : " in " + place);
    }
    return "";
}

void end_process(const UniqueFd& process, pid_t pid, std::chrono::milliseconds patience) {
    signal_process(process, SIGKILL);
    if (wait_for_end(process, patience)) return;
    const std::string what = describe_hanging(pid);
    throw Error(ErrorCode::unavailable,
                (what.empty() ? "process " + std::to_string(pid) + " hangs in the kernel" : what) +
                    " and does not end although it was killed");
}

void kill_groups(const fs::path& record, const fs::path& root) {
    for (const fs::path& group : groups_in(record, root)) {
        std::error_code failure;
        const fs::path file = group / "cgroup.kill";
        if (fs::exists(file, failure)) std::ofstream(file) << "1";
    }
}

void remove_groups(const fs::path& record, const fs::path& root) {
    const SystemClock clock;
    const auto end = clock.steady_now() + kGroupPatience;
    for (const fs::path& group : groups_in(record, root)) {
        // The kernel may count a process to a group for a moment after it has ended.
        while (::rmdir(group.c_str()) != 0 && errno != ENOENT) {
            if (errno != EBUSY || clock.steady_now() >= end) {
                throw_errno("cannot remove the control group " + group.string());
            }
            std::this_thread::sleep_for(kGroupPoll);
        }
        ::rmdir(group.parent_path().c_str());  // Of all nodes: when this was the last.
    }
}

}  // namespace gruca::cluster
