#include "agent/keeper.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "agent/job_network.h"
#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process_id.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "spec/node_directory.h"

namespace gruca::agent {
namespace {

namespace names = spec::node_directory;

// Above every descriptor that the keeper is given, so that moving one never overwrites another.
constexpr int kLowestFreeFd = 16;
// A keeper that is not told to go has nothing to do but to leave.
constexpr std::chrono::seconds kUnpreparedPatience{10};

UniqueFd out_of_the_way(const UniqueFd& fd) {
    UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kLowestFreeFd));
    if (!moved.is_open()) throw_errno("cannot duplicate a descriptor");
    return moved;
}

UniqueFd anonymous_file(const std::string& content) {
    UniqueFd fd(::memfd_create("order", MFD_CLOEXEC));
    if (!fd.is_open()) throw_errno("cannot create an anonymous file");
    write_all(fd.get(), bytes_of(content));
    ::lseek(fd.get(), 0, SEEK_SET);
    return fd;
}

// All that the child needs between clone and exec, where only plain system calls are allowed.
struct Child {
    const char* program;
    std::array<UniqueFd, 4> fds;  // Become kOrderFd and up.
    UniqueFd null;
    bool new_user;
    bool new_network;
    std::string uid_map, gid_map;
};

bool write_text(const char* path, const char* text, std::size_t size) {
    const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    const bool wrote = fd >= 0 && ::write(fd, text, size) == static_cast<ssize_t>(size);
    if (fd >= 0) ::close(fd);
    return wrote;
}

[[noreturn]] void become_keeper(const Child& child, int report_fd) {
    bool ready = true;
    if (child.new_user) {
        // The agent's memory is nobody's to read; so would be these files, until exec.
        ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        ready = write_text("/proc/self/setgroups", "deny", 4) &&
                write_text("/proc/self/uid_map", child.uid_map.data(), child.uid_map.size()) &&
                write_text("/proc/self/gid_map", child.gid_map.data(), child.gid_map.size());
    }
    ready = ready && ::setsid() >= 0 && ::dup2(child.null.get(), STDIN_FILENO) >= 0;
    for (std::size_t i = 0; i < child.fds.size(); ++i) {
        ready = ready && ::dup2(child.fds[i].get(), kOrderFd + static_cast<int>(i)) >= 0;
    }
    ::close_range(kWorkFd + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    if (ready) {
        const std::array<const char*, 2> argv = {"gruca-keeper", nullptr};
        const std::array<const char*, 2> environment = {"LC_ALL=C.UTF-8", nullptr};
        ::execve(child.program, const_cast<char* const*>(argv.data()),
                 const_cast<char* const*>(environment.data()));
    }
    const int failure = errno;
    [[maybe_unused]] const ssize_t told = ::write(report_fd, &failure, sizeof failure);
    ::_exit(127);
}

[[noreturn]] void throw_no_namespaces(int failure) {
    throw Error(ErrorCode::unavailable,
                std::string("this machine does not let gruca isolate jobs: new namespaces are "
                            "refused (") +
                    std::strerror(failure) +
                    "); run gruca-service as root with CAP_SYS_ADMIN, or allow user namespaces "
                    "(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0)");
}

pid_t clone_keeper(const Child& child) {
    std::array<int, 2> ends;
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
    const UniqueFd report_in(ends[0]);
    UniqueFd report_out = out_of_the_way(UniqueFd(ends[1]));
    const unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | SIGCHLD |
                                (child.new_user ? CLONE_NEWUSER : 0u) |
                                (child.new_network ? CLONE_NEWNET : 0u);
    const pid_t pid =
        static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
    if (pid < 0) throw_no_namespaces(errno);
    if (pid == 0) become_keeper(child, report_out.get());
    report_out.reset();
    int failure = 0;
    if (::read(report_in.get(), &failure, sizeof failure) == sizeof failure) {
        ::waitpid(pid, nullptr, 0);
        errno = failure;
        throw_errno(std::string("cannot start the keeper ") + child.program);
    }
    return pid;
}

// Of a keeper that has written none.
Ending unsaid_ending(int raw) {
    const std::string keeper = "the process that keeps the training program ";
    if (WIFSIGNALED(raw)) {
        const ExitStatus status{.code = 0, .signal = WTERMSIG(raw)};
        return {.status = status, .failure = keeper + "was " + status.describe()};
    }
    const ExitStatus status{.code = WEXITSTATUS(raw), .signal = 0};
    return {.status = status,
            .failure = keeper + "ended with " + status.describe() + " and did not say why"};
}

}  // namespace

Keeper::Keeper(const KeeperOptions& options, const KeeperOrder& order)
    : work_dir_(options.work_dir) {
    std::filesystem::remove(work_dir_ / kEndingFile);
    std::array<int, 2> ends;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw_errno("cannot create a pair of sockets");
    }
    const UniqueFd command_in(ends[0]);
    command_.reset(ends[1]);
    const uid_t uid = ::geteuid();
    const std::string program = (options.program.parent_path() / "gruca-keeper").string();
    const Child child{
        .program = program.c_str(),
        .fds = {out_of_the_way(anonymous_file(order.to_json().dump())), out_of_the_way(command_in),
                out_of_the_way(
                    open_file(work_dir_ / names::kLog, O_WRONLY | O_CREAT | O_APPEND, 0600)),
                out_of_the_way(open_file(work_dir_, O_RDONLY | O_DIRECTORY))},
        .null = open_file("/dev/null", O_RDONLY),
        .new_user = uid != 0,
        .new_network = order.network.has_value(),
        .uid_map = "0 " + std::to_string(uid) + " 1",
        .gid_map = "0 " + std::to_string(::getegid()) + " 1"};
    pid_ = clone_keeper(child);
    const std::optional<Error> failure = run_guarded([&] { prepare(options, order); });
    // Of a keeper that was killed meanwhile, that is the reason, and wait_for() tells it.
    if (failure && !was_killed_unprepared()) throw Error(*failure);
}

// From here on a keeper that never hears kGo ends when the command socket closes.
void Keeper::prepare(const KeeperOptions& options, const KeeperOrder& order) {
    process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    if (!process_.is_open()) throw_errno("cannot watch the keeper");
    if (const auto id = process_id_of(pid_)) {
        replace_file(work_dir_ / names::kKeeperPid, id->to_text());
    }
    if (options.account) options.account(pid_);
    if (order.network) connect_node(*order.network, pid_);
    send(kGo);
}

// Ends it and says whether it had already been ended by others. How the failed step came to fail
// does not tell: a process that is being killed loses its namespaces some time before it ends.
bool Keeper::was_killed_unprepared() {
    command_.reset();  // One that lives writes an ending and leaves.
    if (process_.is_open() && wait_for(kUnpreparedPatience)) return !written_ending();
    ::kill(pid_, SIGKILL);  // Not reaped, so the pid is still its own.
    ::waitpid(pid_, nullptr, 0);
    return false;
}

Keeper::~Keeper() {
    if (ending_ || abandoned_ || pid_ < 0) return;
    destroy();
    ::waitpid(pid_, nullptr, 0);
}

void Keeper::send(char command) const {
    // A keeper that has just ended does not read it any more: then there is nothing to command.
    [[maybe_unused]] const ssize_t sent = ::send(command_.get(), &command, 1, MSG_NOSIGNAL);
}

void Keeper::terminate() const {
    send(kTerminate);
}

void Keeper::kill() const {
    send(kKill);
}

void Keeper::destroy() const {
    signal_process(process_, SIGKILL);
}

std::optional<Ending> Keeper::written_ending() const {
    std::error_code failure;
    if (!std::filesystem::exists(work_dir_ / kEndingFile, failure)) return std::nullopt;
    return Ending::from_json(Json::parse(read_file(work_dir_ / kEndingFile)));
}

std::optional<Ending> Keeper::wait_for(std::chrono::milliseconds patience) {
    if (ending_) return ending_;
    if (!wait_for_end(process_, patience)) {
        const std::optional<Ending> written = written_ending();
        if (written && written->stuck) ending_ = written;
        return ending_;
    }
    int raw = 0;
    ::waitpid(pid_, &raw, 0);
    ending_ = written_ending();
    if (!ending_) {
        const auto unmarked = run_guarded([&] {
            const UniqueFd log = open_file(work_dir_ / names::kLog, O_WRONLY | O_APPEND);
            write_all(log.get(), bytes_of(names::kCutMark));
        });
        if (unmarked) log_warning("the end of the log is not marked: {}", unmarked->what());
        ending_ = unsaid_ending(raw);
    }
    return ending_;
}

}  // namespace gruca::agent
