#include "cluster/local_cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/boundary.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/replace_file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "cluster/last_kill.h"
#include "spec/node_directory.h"

namespace gruca::cluster {
namespace {

namespace fs = std::filesystem;
namespace names = spec::node_directory;

// What a killed agent's keeper gets to write the last of its pipe to the log, and its ending.
constexpr std::chrono::seconds kKeeperPatience = names::kEndingWithin + std::chrono::seconds(10);
constexpr std::chrono::milliseconds kKeeperPoll{100};
constexpr std::chrono::seconds kAgentStartPatience{10};
constexpr std::chrono::milliseconds kAgentStartPoll{5};
// In the directory of the nodes; no node's id begins with a dot.
constexpr const char* kRemoved = ".removed";

// Node ids become directory names.
void require_node_id(const std::string& id) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-';
    };
    if (id.empty() || id.size() > 200 || !std::all_of(id.begin(), id.end(), allowed)) {
        throw Error(ErrorCode::invalid_argument, "not a node id: " + id);
    }
}

std::optional<ProcessId> read_process_id(const fs::path& file) {
    std::error_code failure;
    if (!fs::exists(file, failure)) return std::nullopt;
    return ProcessId::from_text(read_file(file));
}

std::vector<std::string> node_ids_in(const fs::path& nodes_dir) {
    std::vector<std::string> ids;
    for (const auto& entry : fs::directory_iterator(nodes_dir)) {
        std::string name = entry.path().filename().string();
        if (name != kRemoved) ids.push_back(std::move(name));
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

// An agent holds its node's lock all its life. Closed when another process has it.
UniqueFd try_lock(const fs::path& directory) {
    UniqueFd lock = open_file(directory / names::kAgentLock, O_RDWR | O_CREAT, 0600);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK) throw_errno("cannot lock the node " + directory.string());
    return {};
}

// Nothing when no agent was ever started. One that has just been started, by a cluster that has
// died since, is waited for until it has written who it is.
std::optional<ProcessId> agent_of(const fs::path& directory) {
    const SystemClock clock;
    const auto end = clock.steady_now() + kAgentStartPatience;
    for (;;) {
        const bool is_locked = !try_lock(directory).is_open();
        const auto id = read_process_id(directory / names::kAgentPid);
        if (id || !is_locked || clock.steady_now() >= end) return id;
        std::this_thread::sleep_for(kAgentStartPoll);
    }
}

// A keeper that cannot end has said so, once its log was complete.
bool says_it_hangs(const fs::path& work) {
    std::error_code failure;
    if (!fs::exists(work / names::kEnding, failure)) return false;
    bool hangs = false;
    run_guarded([&] { hangs = Json::parse(read_file(work / names::kEnding)).get_bool("stuck"); });
    return hangs;
}

// Whether it ended. Not waited for is what says that it hangs.
bool keeper_ends(const UniqueFd& keeper, const fs::path& work) {
    const SystemClock clock;
    const auto end = clock.steady_now() + kKeeperPatience;
    while (!wait_for_end(keeper, kKeeperPoll)) {
        if (says_it_hangs(work) || clock.steady_now() >= end) return false;
    }
    return true;
}

// How a child of this process ended; something vaguer for a process that is not one.
std::string reap(const UniqueFd& process, pid_t pid) {
    siginfo_t info = {};
    if (!process.is_open() ||
        ::waitid(P_PIDFD, static_cast<id_t>(process.get()), &info, WEXITED | WNOHANG) != 0 ||
        info.si_pid == 0) {
        return "its agent is gone (process " + std::to_string(pid) + ")";
    }
    if (info.si_code == CLD_EXITED) {
        return "its agent ended with exit code " + std::to_string(info.si_status);
    }
    return "its agent was killed by signal " + std::to_string(info.si_status) + " (" +
           ::strsignal(info.si_status) + ")";
}

// A keeper that has ended without saying how was killed, and what was in its pipe is lost.
void mark_if_cut(const fs::path& work) {
    std::error_code failure;
    if (fs::exists(work / names::kEnding, failure)) return;
    const UniqueFd log = open_file(work / names::kLog, O_RDWR | O_APPEND);
    const std::string mark = names::kCutMark;
    std::string end(mark.size(), '\0');
    const off_t size = ::lseek(log.get(), 0, SEEK_END);
    const auto at = size - static_cast<off_t>(mark.size());
    if (at >= 0 && ::pread(log.get(), end.data(), end.size(), at) >= 0 && end == mark) return;
    write_all(log.get(), bytes_of(mark));
}

}  // namespace

LocalCluster::LocalCluster(LocalClusterOptions options, std::function<void(NodeGone)> gone)
    : options_(std::move(options)), gone_(std::move(gone)), trash_(options_.nodes_dir / kRemoved) {
    fs::create_directories(options_.nodes_dir);
    fs::permissions(options_.nodes_dir, fs::perms::owner_all);
    wake_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_fd_.is_open()) throw_errno("cannot create an event descriptor");
    adopt();
    watcher_ = std::jthread([this](std::stop_token stop) { watch(stop); });
}

LocalCluster::~LocalCluster() {
    watcher_.request_stop();
    wake();
    const std::lock_guard lock(mutex_);
    if (options_.network == nullptr || !watched_.empty()) return;
    if (const auto failure = run_guarded([this] { options_.network->remove(); })) {
        log_warning("the network of the jobs stays behind: {}", failure->what());
    }
}

fs::path LocalCluster::directory_of(const std::string& node_id) const {
    require_node_id(node_id);
    return options_.nodes_dir / node_id;
}

void LocalCluster::adopt() {
    for (const std::string& node_id : node_ids_in(options_.nodes_dir)) {
        const std::optional<ProcessId> id = agent_of(options_.nodes_dir / node_id);
        // Without a pid nothing was started yet: a launch will start from the beginning.
        if (!id) continue;
        watched_[node_id] = {.process = open_process(*id), .pid = id->pid};
    }
}

void LocalCluster::launch(const spec::NodeConfig& config) {
    const fs::path directory = directory_of(config.node_id);
    const std::lock_guard lock(mutex_);
    if (const auto found = watched_.find(config.node_id); found != watched_.end()) {
        found->second.reported = false;  // Said again, should it be gone.
        wake();
        return;
    }
    if (options_.network != nullptr) options_.network->make();  // Whoever has removed it since.
    spec::NodeConfig complete = config;
    complete.work_dir = (directory / names::kWork).string();
    fs::create_directories(directory / names::kWork);
    fs::permissions(directory, fs::perms::owner_all);
    replace_file(directory / names::kConfig, complete.to_json().dump(2) + "\n", 0600);
    start_agent(config.node_id);
    wake();
}

void LocalCluster::start_agent(const std::string& node_id) {
    const fs::path directory = directory_of(node_id);
    const UniqueFd lock = try_lock(directory);
    if (!lock.is_open()) {
        throw Error(ErrorCode::already_exists,
                    "an agent that does not say who it is runs the node " + directory.string());
    }
    const UniqueFd log = open_file(directory / names::kAgentLog, O_WRONLY | O_CREAT | O_APPEND);
    Subprocess agent({.argv = {options_.agent_program.string(), "--config",
                               (directory / names::kConfig).string()},
                      .directory = "/",
                      .stdin_fd = lock.get(),
                      .stdout_fd = log.get(),
                      .stderr_fd = log.get(),
                      .new_session = true});
    const std::optional<ProcessId> id = process_id_of(agent.pid());
    Watched watched{.process = UniqueFd(), .pid = agent.pid()};
    if (id) {
        replace_file(directory / names::kAgentPid, id->to_text());
        watched.process = open_process(*id);
    }
    if (watched.process.is_open()) {
        agent.release();
    } else {  // It was quicker.
        watched.why = "its agent ended at once: " + agent.wait().describe();
    }
    watched_[node_id] = std::move(watched);
}

void LocalCluster::remove(const std::string& node_id) {
    const fs::path directory = directory_of(node_id);
    const Watched watched = forget(node_id);
    const bool was_stuck = [&] {
        const std::lock_guard lock(mutex_);
        return stuck_.erase(node_id) > 0;
    }();
    wake();
    const fs::path work = directory / names::kWork;
    const auto patience = was_stuck ? std::chrono::milliseconds(0) : kKillPatience;
    try {
        end_process(watched.process, watched.pid, patience);
        reap(watched.process, watched.pid);
        if (const auto keeper = read_process_id(work / names::kKeeperPid)) {
            const UniqueFd process = open_process(*keeper);
            const bool no_hope = was_stuck || says_it_hangs(work);
            if (no_hope || !keeper_ends(process, work)) {
                kill_groups(work / names::kCgroups);
                end_process(process, keeper->pid,
                            no_hope ? std::chrono::milliseconds(0) : kKillPatience);
            }
        }
        remove_groups(work / names::kCgroups);
        trash_.take(directory);
    } catch (const std::exception&) {
        const std::lock_guard lock(mutex_);
        stuck_.insert(node_id);
        throw;
    }
}

LocalCluster::Watched LocalCluster::forget(const std::string& node_id) {
    const std::lock_guard lock(mutex_);
    Watched watched;
    if (const auto found = watched_.find(node_id); found != watched_.end()) {
        watched = std::move(found->second);
        watched_.erase(found);
    }
    if (watched.process.is_open()) return watched;
    // An earlier removal has forgotten it and did not end it.
    if (const auto agent = read_process_id(directory_of(node_id) / names::kAgentPid)) {
        watched = {.process = open_process(*agent), .pid = agent->pid};
    }
    return watched;
}

std::optional<std::string> LocalCluster::left_log(const std::string& node_id) const {
    const fs::path work = directory_of(node_id) / names::kWork;
    // An agent that is silent is not gone: without it the keeper ends.
    if (const auto agent = read_process_id(work.parent_path() / names::kAgentPid)) {
        signal_process(open_process(*agent), SIGKILL);
    }
    // A killed agent's keeper is still writing what was in the pipe.
    const auto keeper = read_process_id(work / names::kKeeperPid);
    const bool has_ended = !keeper || keeper_ends(open_process(*keeper), work);
    std::error_code failure;
    if (!fs::exists(work / names::kLog, failure)) return std::nullopt;
    if (keeper && has_ended) mark_if_cut(work);
    return (work / names::kLog).string();
}

std::vector<std::string> LocalCluster::nodes() const {
    return node_ids_in(options_.nodes_dir);
}

void LocalCluster::wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(wake_fd_.get(), &one, sizeof one);
}

std::vector<NodeGone> LocalCluster::newly_gone() {
    const std::lock_guard lock(mutex_);
    std::vector<NodeGone> gone;
    for (auto& [id, watched] : watched_) {
        if (watched.process.is_open() &&
            wait_for_end(watched.process, std::chrono::milliseconds(0))) {
            watched.why = reap(watched.process, watched.pid);
            watched.process.reset();
        }
        if (watched.process.is_open() || watched.reported) continue;
        watched.reported = true;
        if (watched.why.empty()) watched.why = reap(watched.process, watched.pid);
        gone.push_back({.node_id = id, .why = watched.why});
    }
    return gone;
}

void LocalCluster::watch(std::stop_token stop) {
    while (!stop.stop_requested()) {
        for (NodeGone& gone : newly_gone()) gone_(std::move(gone));
        // Duplicates: remove() may close a descriptor while this thread waits on it.
        std::vector<UniqueFd> mine;
        std::vector<pollfd> waiting = {{.fd = wake_fd_.get(), .events = POLLIN, .revents = 0}};
        {
            const std::lock_guard lock(mutex_);
            for (const auto& [id, watched] : watched_) {
                if (!watched.process.is_open()) continue;
                mine.emplace_back(::fcntl(watched.process.get(), F_DUPFD_CLOEXEC, 0));
                waiting.push_back({.fd = mine.back().get(), .events = POLLIN, .revents = 0});
            }
        }
        ::poll(waiting.data(), waiting.size(), -1);
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = ::read(wake_fd_.get(), &count, sizeof count);
    }
}

}  // namespace gruca::cluster
