#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace gruca {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> result;
    for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

// What is done in the child before the program starts, in order.
class Actions {
  public:
    explicit Actions(const SpawnOptions& options, int stdin_fd) {
        require(::posix_spawn_file_actions_init(&files_));
        place(stdin_fd, STDIN_FILENO);
        place(options.stdout_fd, STDOUT_FILENO);
        place(options.stderr_fd, STDERR_FILENO);
        // Libraries open descriptors without O_CLOEXEC. A child that outlives its parent would keep
        // its listening sockets and locks.
        require(::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1));
        if (!options.directory.empty()) {
            require(::posix_spawn_file_actions_addchdir_np(&files_, options.directory.c_str()));
        }
        require(::posix_spawnattr_init(&attributes_));
        sigset_t signals;
        ::sigemptyset(&signals);
        require(::posix_spawnattr_setsigmask(&attributes_, &signals));
        ::sigaddset(&signals, SIGPIPE);
        require(::posix_spawnattr_setsigdefault(&attributes_, &signals));
        int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
        if (options.new_session) flags |= POSIX_SPAWN_SETSID;
        require(::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)));
    }
    ~Actions() {
        ::posix_spawn_file_actions_destroy(&files_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    Actions(const Actions&) = delete;
    Actions& operator=(const Actions&) = delete;

    // An errno. Does not copy this process, which for a large one costs more than all else.
    int start(pid_t* pid, const std::vector<char*>& argv, char* const* environment) const {
        return ::posix_spawnp(pid, argv[0], &files_, &attributes_, argv.data(), environment);
    }

  private:
    static void require(int failure) {
        errno = failure;
        if (failure != 0) throw_errno("cannot describe a process to start");
    }
    void place(int from, int to) {
        if (from >= 0) require(::posix_spawn_file_actions_adddup2(&files_, from, to));
    }

    posix_spawn_file_actions_t files_;
    posix_spawnattr_t attributes_;
};

ExitStatus decode(int raw) {
    if (WIFSIGNALED(raw)) return {.code = 0, .signal = WTERMSIG(raw)};
    return {.code = WEXITSTATUS(raw), .signal = 0};
}

}  // namespace

std::string ExitStatus::describe() const {
    if (signal == 0) return "exit code " + std::to_string(code);
    return "killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

Subprocess::Subprocess(const SpawnOptions& options) {
    if (options.argv.empty()) throw Error(ErrorCode::invalid_argument, "no program to start");
    const UniqueFd null = open_file("/dev/null", O_RDONLY);
    const std::vector<char*> argv = pointers(options.argv);
    const std::vector<char*> environment =
        options.environment ? pointers(*options.environment) : std::vector<char*>();
    const Actions actions(options, options.stdin_fd >= 0 ? options.stdin_fd : null.get());
    errno = actions.start(&pid_, argv, options.environment ? environment.data() : ::environ);
    if (errno != 0) {
        pid_ = -1;
        throw_errno("cannot start " + options.argv[0]);
    }
    pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Subprocess::~Subprocess() {
    if (pid_ < 0 || status_) return;
    send_signal(SIGKILL);
    wait();
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_(other.status_) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(pidfd_, other.pidfd_);
    std::swap(status_, other.status_);
    return *this;
}

void Subprocess::send_signal(int signal) const {
    if (pid_ > 0 && !status_) ::kill(pid_, signal);
}

ExitStatus Subprocess::wait() {
    while (!status_) {
        int raw = 0;
        if (::waitpid(pid_, &raw, 0) == pid_) {
            status_ = decode(raw);
        } else if (errno != EINTR) {
            throw_errno("cannot wait for process " + std::to_string(pid_));
        }
    }
    return *status_;
}

std::optional<ExitStatus> Subprocess::wait_for(std::chrono::milliseconds patience) {
    if (status_) return status_;
    pollfd watched{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&watched, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
    return wait();
}

pid_t Subprocess::release() {
    return std::exchange(pid_, -1);
}

RunResult run(SpawnOptions options, std::size_t output_bytes_max) {
    std::array<int, 2> ends;
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
    UniqueFd in(ends[0]), out(ends[1]);
    options.stdout_fd = out.get();
    options.stderr_fd = out.get();
    Subprocess child(options);
    out.reset();
    RunResult result;
    std::array<char, 4096> piece;
    for (;;) {
        const ssize_t got = ::read(in.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        const std::size_t room = output_bytes_max - result.output.size();
        result.output.append(piece.data(), std::min(room, static_cast<std::size_t>(got)));
    }
    result.status = child.wait();
    return result;
}

}  // namespace gruca
