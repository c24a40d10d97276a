#include "base/subprocess.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
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

// Runs in the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const SpawnOptions& options, char* const* argv, char* const* environment,
                         int stdin_fd, int report_fd) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    const auto place = [](int from, int to) {
        return from < 0 || (from == to ? ::fcntl(to, F_SETFD, 0) : ::dup2(from, to)) >= 0;
    };
    // Libraries open descriptors without O_CLOEXEC. A child that outlives its parent would keep its
    // listening sockets and locks.
    ::close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    const bool ready = (!options.new_session || ::setsid() >= 0) && place(stdin_fd, STDIN_FILENO) &&
                       place(options.stdout_fd, STDOUT_FILENO) &&
                       place(options.stderr_fd, STDERR_FILENO) &&
                       (options.directory.empty() || ::chdir(options.directory.c_str()) == 0);
    if (ready) {
        if (environment != nullptr) {
            ::execvpe(argv[0], argv, environment);
        } else {
            ::execvp(argv[0], argv);
        }
    }
    const int failure = errno;
    [[maybe_unused]] const ssize_t told = ::write(report_fd, &failure, sizeof failure);
    ::_exit(127);
}

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
    std::array<int, 2> ends;
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
    UniqueFd report_in(ends[0]), report_out(ends[1]);
    const std::vector<char*> argv = pointers(options.argv);
    const std::vector<char*> environment =
        options.environment ? pointers(*options.environment) : std::vector<char*>();
    pid_ = ::fork();
    if (pid_ < 0) throw_errno("cannot fork");
    if (pid_ == 0) {
        become(options, argv.data(), options.environment ? environment.data() : nullptr,
               options.stdin_fd >= 0 ? options.stdin_fd : null.get(), report_out.get());
    }
    report_out.reset();
    int failure = 0;
    if (::read(report_in.get(), &failure, sizeof failure) == sizeof failure) {
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
        errno = failure;
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
