// The service: API, state and nodes of one machine. Runs until SIGTERM or SIGINT; jobs go on.

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/private_memory.h"
#include "cluster/job_network.h"
#include "cluster/local_cluster.h"
#include "cluster/network_probe.h"
#include "service/service.h"
#include "spec/fields.h"

namespace {

using namespace gruca;

// Of service.log in the data directory, into which `gruca service start` has it write.
constexpr LogLimits kLogLimits{.file_bytes_max = 16u << 20, .files_kept = 4};

std::string data_dir_by_default() {
    if (const char* home = ::getenv("GRUCA_HOME")) return home;
    const char* home = ::getenv("HOME");
    return std::string(home == nullptr ? "/root" : home) + "/.gruca";
}

// What no job may see besides the service's own directory. A file that is a link is hidden where it
// really lies, and both as absolute paths, because a job's keeper works in another directory.
std::vector<std::string> hidden_paths(const service::AwsFiles& files) {
    std::vector<std::filesystem::path> paths = {"/root/.aws", files.credentials, files.config};
    if (const char* home = ::getenv("HOME")) {
        paths.push_back(std::filesystem::path(home) / ".aws");
        paths.push_back(std::filesystem::path(home) / ".aws" / "credentials");
        paths.push_back(std::filesystem::path(home) / ".aws" / "config");
    }
    std::vector<std::string> hidden;
    for (const std::filesystem::path& path : paths) {
        if (std::filesystem::is_character_file(path)) continue;  // "/dev/null" stands for no file.
        hidden.push_back(std::filesystem::weakly_canonical(path));
    }
    return hidden;
}

// Now, and not when the first job needs them.
void require_programs(const std::filesystem::path& directory) {
    for (const char* name : {"gruca-agent", "gruca-keeper"}) {
        if (::access((directory / name).c_str(), X_OK) == 0) continue;
        throw Error(ErrorCode::not_found,
                    "gruca's programs belong into one directory, and this one cannot be run: " +
                        (directory / name).string());
    }
}

// Blocked before any thread exists, so that none of them is interrupted by these.
sigset_t block_end_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::sigaddset(&signals, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    return signals;
}

void serve(const service::ServiceSettings& settings) {
    const sigset_t signals = block_end_signals();
    const SystemClock clock;
    SystemRandom random;
    const service::AwsFiles aws_files =
        service::aws_files([](const char* name) -> const char* { return ::getenv(name); });
    const std::filesystem::path agent =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "gruca-agent";
    require_programs(agent.parent_path());
    service::require_valid(settings);
    limit_log(std::filesystem::path(settings.data_dir) / "service.log", kLogLimits);
    const std::unique_ptr<cluster::JobNetwork> network =
        cluster::open_job_network(settings.job_network, settings.slots, settings.data_dir);
    service::Service service(
        {.settings = settings,
         .aws_files = aws_files,
         .make_cluster =
             [&](const std::filesystem::path& nodes_dir, service::NodeListener listener) {
                 return std::make_unique<cluster::LocalCluster>(
                     cluster::LocalClusterOptions{
                         .agent_program = agent, .nodes_dir = nodes_dir, .network = network.get()},
                     std::move(listener));
             },
         .cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
         .network = network ? std::optional(network->facts()) : std::nullopt,
         .hidden_paths = hidden_paths(aws_files)},
        clock, random);
    int signal = 0;
    ::sigwait(&signals, &signal);
    log_info("ending on signal {}; jobs go on", signal);
    service.stop();
}

void run(const std::vector<std::string>& words) {
    service::ServiceArguments arguments = service::parse_service_arguments(words);
    if (arguments.settings.data_dir.empty()) arguments.settings.data_dir = data_dir_by_default();
    switch (arguments.command) {
        case service::ServiceCommand::help:
            std::fputs(service::service_help().c_str(), stdout);
            return;
        case service::ServiceCommand::print_config:
            std::puts(spec::write_fields(arguments.settings).dump(2).c_str());
            return;
        case service::ServiceCommand::probe:
            std::puts(cluster::probe_network(arguments.settings.job_network,
                                             arguments.settings.slots, arguments.settings.data_dir)
                          .dump()
                          .c_str());
            return;
        case service::ServiceCommand::run:
            serve(arguments.settings);
            return;
    }
}

}  // namespace

int main(int argc, char** argv) {
    set_up_log("gruca-service", LogLevel::info);
    keep_memory_private();
    const auto error = run_guarded([&] { run({argv + 1, argv + argc}); });
    if (!error) return 0;
    log_error("{}", error->what());
    return exit_code(error->code());
}
