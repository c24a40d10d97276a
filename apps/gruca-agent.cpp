// The supervisor of one node. `gruca-agent --config <file>` runs until the service releases the
// node; `gruca-agent --probe` is what `gruca doctor` asks. Called as `gruca-rsh` it is what programs
// of a job run commands on each other's nodes with.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "agent/agent.h"
#include "agent/probe.h"
#include "agent/remote_shell.h"
#include "agent/service_link.h"
#include "base/boundary.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/private_memory.h"
#include "base/process_id.h"
#include "base/replace_file.h"
#include "spec/node.h"
#include "spec/node_directory.h"
#include "store/object_store.h"

namespace {

namespace fs = std::filesystem;
using namespace gruca;

bool is_same_file(int a, int b) {
    struct stat of_a = {}, of_b = {};
    return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

// One agent a node, whoever starts it: two would write one log. A cluster has locked the node
// already and hands the lock over as stdin.
UniqueFd lock_node(const fs::path& directory) {
    UniqueFd lock = open_file(directory / spec::node_directory::kAgentLock, O_RDWR | O_CREAT, 0600);
    if (is_same_file(STDIN_FILENO, lock.get())) {
        lock.reset(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        throw Error(ErrorCode::already_exists,
                    "another agent runs this node already: " + directory.string());
    }
    replace_file(directory / spec::node_directory::kAgentPid,
                 process_id_of(::getpid()).value().to_text());
    return lock;
}

void run_agent(const fs::path& config_file, const Clock& clock) {
    spec::NodeConfig config = spec::NodeConfig::from_json(Json::parse(read_file(config_file)));
    const UniqueFd lock = lock_node(config_file.parent_path());
    const std::unique_ptr<store::ObjectStore> objects = store::open_store(config.store_uri);
    agent::AwsServiceLink service(config, clock);
    log_info("node {} of the service at {}", config.node_id, config.endpoint);
    agent::Agent agent({.config = std::move(config), .program = fs::read_symlink("/proc/self/exe")},
                       service, *objects, clock);
    agent.run();
}

int print_probe() {
    const std::optional<Error> failure = run_guarded(
        [] { std::puts(agent::probe_machine(fs::read_symlink("/proc/self/exe")).dump().c_str()); });
    if (!failure) return 0;
    std::fprintf(stderr, "gruca-agent: %s\n", failure->what());
    return exit_code(failure->code());
}

}  // namespace

int main(int argc, char** argv) {
    if (fs::path(argv[0]).filename() == agent::kRemoteShellName) {
        std::signal(SIGPIPE, SIG_IGN);
        return agent::run_remote_shell({argv + 1, argv + argc});
    }
    const SystemClock clock;
    if (argc == 2 && std::string_view(argv[1]) == "--probe") return print_probe();
    if (argc != 3 || std::string_view(argv[1]) != "--config") {
        std::fputs("usage: gruca-agent --config <file>\n", stderr);
        return 2;
    }
    set_up_log("agent", LogLevel::info);
    keep_memory_private();
    std::signal(SIGPIPE, SIG_IGN);
    const std::optional<Error> failure = run_guarded([&] { run_agent(argv[2], clock); });
    if (!failure) return 0;
    log_error("{}", failure->what());
    return exit_code(failure->code());
}
