#include "agent/probe.h"

#include <unistd.h>

#include <chrono>
#include <string_view>
#include <system_error>

#include "agent/job_network.h"
#include "agent/keeper.h"
#include "agent/node_cgroups.h"
#include "base/boundary.h"
#include "base/file.h"
#include "base/process_id.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{20};
constexpr std::string_view kGroupPrefix = "probe-";  // And the probe's process id.

// Why a program that does nothing cannot run as a job does; empty when it can.
std::string why_not_isolated(const fs::path& program, const fs::path& work) {
    const fs::path hosts = work / "hosts";
    write_file_atomic(hosts, "127.0.0.1 localhost\n");
    fs::create_directories(work / "ml");
    Keeper keeper({.program = program, .work_dir = work},
                  {.argv = {"true"},
                   .environment = {"PATH=/usr/bin:/bin"},
                   .hostname = "algo-1",
                   .hosts_file = hosts.string(),
                   .binds = {{.source = (work / "ml").string(), .target = "/opt/ml"}},
                   .hidden_paths = {}});
    const std::optional<Ending> ending = keeper.wait_for(kPatience);
    if (!ending) {
        keeper.destroy();
        keeper.abandon();  // What hangs in the kernel is not waited for.
        return "a program that does nothing has not ended within 20 s";
    }
    if (!ending->failure.empty()) return ending->failure;
    return ending->status.ok()
               ? ""
               : "a program that does nothing ended with " + ending->status.describe();
}

// Those of a job that has a network of its own.
Json name_servers() {
    Json servers = Json::array();
    for (const std::string& line : split(resolver_text(), '\n')) {
        if (line.starts_with("nameserver ")) servers.push(std::string(trim(line.substr(11))));
    }
    return servers;
}

}  // namespace

void remove_stale_probes(const fs::path& groups) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(groups, failure)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(kGroupPrefix)) continue;
        const auto pid = parse_int(name.substr(kGroupPrefix.size()));
        if (pid && !process_id_of(static_cast<pid_t>(*pid))) ::rmdir(entry.path().c_str());
    }
}

Json probe_machine(const fs::path& program) {
    const TempDir work;
    std::string why;
    if (const auto error = run_guarded([&] { why = why_not_isolated(program, work.path()); })) {
        why = error->message();
    }
    Json groups = Json::array();
    const NodeCgroups cgroups({.name = std::string(kGroupPrefix) + std::to_string(::getpid()),
                               .record = work.path() / "cgroups"});
    for (const fs::path& group : cgroups.groups()) {
        remove_stale_probes(group.parent_path());
        groups.push(group.string());
    }
    return Json::object({{"sandbox", Json::object({{"why", why}})},
                         {"cgroups", Json::object({{"groups", groups}})},
                         {"resolver", Json::object({{"servers", name_servers()}})}});
}

}  // namespace gruca::agent
