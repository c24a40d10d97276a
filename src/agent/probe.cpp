#include "agent/probe.h"

#include <unistd.h>

#include <chrono>

#include "agent/job_network.h"
#include "agent/keeper.h"
#include "agent/node_cgroups.h"
#include "base/boundary.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{20};

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
    if (!ending) return "a program that does nothing has not ended within 20 s";
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

Json probe_machine(const fs::path& program) {
    const TempDir work;
    std::string why;
    if (const auto error = run_guarded([&] { why = why_not_isolated(program, work.path()); })) {
        why = error->message();
    }
    Json groups = Json::array();
    const NodeCgroups cgroups(
        {.name = "probe-" + std::to_string(::getpid()), .record = work.path() / "cgroups"});
    for (const fs::path& group : cgroups.groups()) groups.push(group.string());
    return Json::object({{"sandbox", Json::object({{"why", why}})},
                         {"cgroups", Json::object({{"groups", groups}})},
                         {"resolver", Json::object({{"servers", name_servers()}})}});
}

}  // namespace gruca::agent
