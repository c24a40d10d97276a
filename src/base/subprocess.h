// base/subprocess.h
//
// Starting another program and learning how it ended. A child is always reaped: a Subprocess that
// goes out of scope while its program runs kills it. A child inherits no descriptor but its stdin,
// stdout and stderr.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace gruca {

// How a program ended: an exit code, or the signal that killed it.
struct ExitStatus {
    int code = 0;  // Meaningless when signal != 0.
    int signal = 0;

    bool ok() const { return code == 0 && signal == 0; }
    // What a shell would say: the exit code, or 128 + signal.
    int shell_code() const { return signal != 0 ? 128 + signal : code; }
    std::string describe() const;  // "exit code 3", "killed by signal 9 (Killed)"
    friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

struct SpawnOptions {
    std::vector<std::string> argv;  // argv[0] is looked up in PATH unless it has a '/'.
    // "NAME=value" entries; nothing means the parent's environment.
    std::optional<std::vector<std::string>> environment = {};
    std::string directory = {};  // Empty: the parent's.
    int stdin_fd = -1;           // -1: /dev/null.
    int stdout_fd = -1;          // -1: the parent's.
    int stderr_fd = -1;          // -1: the parent's.
    bool new_session = false;    // setsid: the child outlives its parent's terminal.
};

// Owns a child process. Movable. Owned by one thread.
class Subprocess {
  public:
    // Throws not_found when there is no such program, with its name.
    explicit Subprocess(const SpawnOptions& options);
    ~Subprocess();
    Subprocess(Subprocess&& other) noexcept;
    Subprocess& operator=(Subprocess&& other) noexcept;

    pid_t pid() const { return pid_; }
    void send_signal(int signal) const;  // Nothing happens once the child has been reaped.
    ExitStatus wait();                   // Returns the same status when called again.
    std::optional<ExitStatus> wait_for(std::chrono::milliseconds patience);
    // Gives the child up: it runs on and is not waited for.
    pid_t release();

  private:
    pid_t pid_ = -1;
    UniqueFd pidfd_;
    std::optional<ExitStatus> status_;
};

// Runs to the end and returns the status and what it printed (stdout and stderr together, the first
// `output_bytes_max` bytes).
struct RunResult {
    ExitStatus status;
    std::string output;
};
RunResult run(SpawnOptions options, std::size_t output_bytes_max = 1u << 20);

}  // namespace gruca
