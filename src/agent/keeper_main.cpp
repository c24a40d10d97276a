// Process 1 of a job's pid namespace. One thread; see agent/keeper.h for what it promises.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "agent/disk_usage.h"
#include "agent/job_network.h"
#include "agent/keeper.h"
#include "agent/output_log.h"
#include "agent/remote_shell.h"
#include "agent/sandbox.h"
#include "agent/stillness.h"
#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

constexpr std::size_t kPipeBytes = 1u << 20;
constexpr std::size_t kPieceBytes = 64u << 10;
// How often a program that has to wait is looked at again.
constexpr int kFullPollMs = 10;
constexpr int kLookPollMs = static_cast<int>(kLookEvery.count());
constexpr int kRefused = -1;  // In place of an errno: the machine's fault, already told.
constexpr const char* kOomScore = "/proc/self/oom_score_adj";
// When the machine runs out of memory: the program goes before everything else, the keeper last.
constexpr const char* kProgramOomScore = "500";
constexpr const char* kKeeperOomScore = "-900";

void write_ending(const Ending& ending) {
    const std::string content = ending.to_json().dump() + "\n";
    const char* fresh = "ending.json.new";
    const UniqueFd file(::openat(kWorkFd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.is_open()) throw_errno("cannot write the ending");
    write_all(file.get(), bytes_of(content));
    if (::fsync(file.get()) != 0 || ::renameat(kWorkFd, fresh, kWorkFd, kEndingFile) != 0) {
        throw_errno("cannot write the ending");
    }
    ::fsync(kWorkFd);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> result;
    for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

// In the child: turns it into the training program, or reports an errno.
[[noreturn]] void become_program(const KeeperOrder& order, int output_fd, int report_fd) {
    const std::optional<Error> refused = run_guarded([&] {
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        if (::setsid() < 0) throw_errno("cannot make a session");
        if (::dup2(output_fd, STDOUT_FILENO) < 0 || ::dup2(output_fd, STDERR_FILENO) < 0) {
            throw_errno("cannot redirect the output");
        }
        run_guarded(
            [] { write_all(open_file(kOomScore, O_WRONLY).get(), bytes_of(kProgramOomScore)); });
        drop_privileges();
        // The report descriptor closes with exec; everything else is closed now.
        if (::dup2(report_fd, STDERR_FILENO + 1) < 0) throw_errno("cannot move a descriptor");
        ::fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
        ::close_range(STDERR_FILENO + 2, ~0u, 0);
        const std::vector<char*> argv = pointers(order.argv);
        std::vector<char*> environment = pointers(order.environment);
        ::environ = environment.data();
        ::execvp(argv[0], argv.data());
        const int failure = errno;
        [[maybe_unused]] const auto told = ::write(STDERR_FILENO + 1, &failure, sizeof failure);
        ::_exit(127);
    });
    if (refused) ::dprintf(STDERR_FILENO, "gruca: %s\n", refused->message().c_str());
    const int failure = kRefused;
    [[maybe_unused]] const ssize_t told = ::write(report_fd, &failure, sizeof failure);
    ::_exit(127);
}

std::string why_not_started(const std::string& program, int failure) {
    std::string text = "cannot start " + program + ": " + std::strerror(failure);
    if (failure == ENOENT && program.find('/') == std::string::npos) {
        text += "; no directory in PATH has it: install it, or give its full path";
    } else if (failure == ENOENT && ::access(program.c_str(), F_OK) == 0) {
        text += "; the file is there, but the interpreter in its first line is not";
    } else if (failure == EACCES) {
        text += "; is the file executable (chmod +x)?";
    } else if (failure == ENOEXEC) {
        text += "; a script needs a first line such as #!/bin/sh";
    }
    return text;
}

class KeeperLoop {
  public:
    KeeperLoop(KeeperOrder order, const Clock& clock) : order_(std::move(order)), clock_(clock) {}

    Ending run() {
        set_up_signals();
        if (!start()) return ending_;
        while (!ended_) turn();
        ::unlinkat(kWorkFd, kReserve, 0);
        end_the_rest();
        log_.finish();
        return ending_;
    }

  private:
    void set_up_signals() {
        sigset_t mask;
        ::sigemptyset(&mask);
        for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&mask, signal);
        ::sigprocmask(SIG_BLOCK, &mask, nullptr);
        signals_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
        if (!signals_.is_open()) throw_errno("cannot watch signals");
    }

    bool start() {
        std::array<int, 2> output, report;
        if (::pipe2(output.data(), O_CLOEXEC) != 0 || ::pipe2(report.data(), O_CLOEXEC) != 0) {
            throw_errno("cannot create a pipe");
        }
        output_.reset(output[0]);
        UniqueFd output_in(output[1]), report_out(report[0]), report_in(report[1]);
        ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
        ::fcntl(output_.get(), F_SETPIPE_SZ, kPipeBytes);
        run_guarded(
            [] { write_all(open_file(kOomScore, O_WRONLY).get(), bytes_of(kKeeperOomScore)); });
        program_ = ::fork();
        if (program_ < 0) throw_errno("cannot fork");
        if (program_ == 0) become_program(order_, output_in.get(), report_in.get());
        report_in.reset();
        output_in.reset();
        int failure = 0;
        if (::read(report_out.get(), &failure, sizeof failure) != sizeof failure) return true;
        ::waitpid(program_, nullptr, 0);
        drain();
        ending_ = {.at = clock_.now(),
                   .failure = failure == kRefused ? "cannot confine the program; see its log"
                                                  : why_not_started(order_.argv[0], failure),
                   .order_is_wrong = failure != kRefused};
        return false;
    }

    void turn() {
        const bool full = log_.is_full();
        std::array<pollfd, 3> waiting = {
            pollfd{.fd = full ? -1 : output_.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = agent_is_dead_ ? -1 : kCommandFd, .events = POLLIN, .revents = 0},
            pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
        int patience_ms = full ? kFullPollMs : -1;
        if (still_) {
            if (still_->has_come(clock_.steady_now())) return note_stuck();
            patience_ms = full ? kFullPollMs : kLookPollMs;
        }
        if (::poll(waiting.data(), waiting.size(), patience_ms) < 0) return;
        if (waiting[1].revents != 0) obey();
        if (waiting[2].revents != 0) take_signals();
        if (waiting[0].revents != 0 && !ended_) read_once();
    }

    void obey() {
        char command = 0;
        const ssize_t got = ::read(kCommandFd, &command, 1);
        if (got < 0) return;
        if (got == 0) agent_is_dead_ = true;
        if (got == 0 || command == kKill) kill_everything();
        if (command == kTerminate) ::kill(program_, SIGTERM);
    }

    void kill_everything() {
        ::kill(-1, SIGKILL);
        if (!still_) still_.emplace(clock_.steady_now());
    }

    void take_signals() {
        signalfd_siginfo info = {};
        while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
            if (info.ssi_signo != SIGCHLD) ::kill(program_, static_cast<int>(info.ssi_signo));
        }
        int raw = 0;
        for (pid_t pid; (pid = ::waitpid(-1, &raw, WNOHANG)) > 0;) {
            if (pid == program_) note_end(raw);
        }
    }

    void note_end(int raw) {
        ended_ = true;
        ending_.at = clock_.now();
        ending_.status = WIFSIGNALED(raw) ? ExitStatus{.code = 0, .signal = WTERMSIG(raw)}
                                          : ExitStatus{.code = WEXITSTATUS(raw), .signal = 0};
    }

    // The program was killed and is still there.
    void note_stuck() {
        ended_ = ending_.stuck = true;
        ending_.at = clock_.now();
        ending_.status = {.code = 0, .signal = SIGKILL};
    }

    // Everything that is left in this pid namespace. The kernel holds back forks meanwhile. What it
    // has printed is in the log at once: whoever waits for the log need not wait for what hangs.
    void end_the_rest() {
        kill_everything();
        drain();
        pid_t ended = 0;
        while (!ending_.stuck && (ended = ::waitpid(-1, nullptr, WNOHANG)) >= 0) {
            if (ended > 0) continue;
            ending_.stuck = still_->has_come(clock_.steady_now());
            if (!ending_.stuck) wait_for_child();
        }
        drain();
    }

    void wait_for_child() {
        std::array<pollfd, 2> waiting = {
            pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = output_.get(), .events = POLLIN, .revents = 0}};
        ::poll(waiting.data(), waiting.size(), kLookPollMs);
        if (waiting[1].revents != 0) read_once();
        signalfd_siginfo info = {};
        while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        }
    }

    bool read_once() {
        const ssize_t got = ::read(output_.get(), piece_.data(), piece_.size());
        if (got > 0) log_.append(std::span(piece_).first(static_cast<std::size_t>(got)));
        // A pipe that every process has closed stays readable: nothing to wait for any more.
        if (got == 0) output_.reset();
        return got > 0;
    }

    void drain() {
        while (output_.is_open() && read_once()) {
        }
    }

    const KeeperOrder order_;
    const Clock& clock_;
    UniqueFd signals_;
    UniqueFd output_;
    pid_t program_ = -1;
    bool agent_is_dead_ = false;
    std::optional<Stillness> still_;  // Since everything was killed.
    bool ended_ = false;
    Ending ending_;
    OutputLog log_{kLogFd};
    std::array<char, kPieceBytes> piece_;
};

KeeperOrder read_order() {
    struct stat facts = {};
    if (::fstat(kOrderFd, &facts) != 0) throw_errno("cannot read the order");
    std::string text(static_cast<std::size_t>(facts.st_size), '\0');
    text.resize(read_full(kOrderFd, std::as_writable_bytes(std::span(text))));
    return KeeperOrder::from_json(Json::parse(text));
}

bool told_to_go() {
    char command = 0;
    while (::read(kCommandFd, &command, 1) < 0 && errno == EINTR) {
    }
    return command == kGo;
}

}  // namespace

int run_keeper(const Clock& clock) {
    for (int fd = kOrderFd; fd <= kWorkFd; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // Nothing of this process is the program's to read.
    Ending ending;
    const std::optional<Error> failure = run_guarded([&] {
        KeeperOrder order = read_order();
        if (!told_to_go()) throw Error(ErrorCode::cancelled, "the agent is gone");
        if (order.network) enter_network(*order.network);
        enter_sandbox(order);
        start_remote_shell(order);
        ending = KeeperLoop(std::move(order), clock).run();
    });
    if (failure) {
        ending = {.at = clock.now(),
                  .failure = "cannot set up the job's view of this machine: " + failure->message(),
                  .order_is_wrong = failure->code() == ErrorCode::invalid_argument};
    }
    const std::optional<Error> unwritten = run_guarded([&] { write_ending(ending); });
    if (unwritten) ::dprintf(STDERR_FILENO, "gruca-keeper: %s\n", unwritten->what());
    return unwritten ? exit_code(unwritten->code()) : 0;
}

}  // namespace gruca::agent
