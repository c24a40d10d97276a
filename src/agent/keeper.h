// agent/keeper.h
//
// The training program of a node, seen from its agent. The program runs below a keeper: process 1
// of a pid namespace of its own, a separate process started from the agent's binary. The keeper
//   * writes what the program prints to the log, raw bytes in order, stdout and stderr one pipe;
//   * ends when the program has ended: kills what it left running, drains the pipe, writes the
//     ending, exits. However the keeper dies, every process below it dies with it;
//   * does the same when the agent dies.
//
// Owned by one thread, except that terminate() and kill() may be called from any.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>

#include "agent/keeper_order.h"
#include "base/clock.h"
#include "base/file.h"

namespace gruca::agent {

struct KeeperOptions {
    std::filesystem::path program;   // gruca-agent; gruca-keeper lies beside it.
    std::filesystem::path work_dir;  // Of the node: log, keeper.pid and ending.json are there.
    // Called with the keeper's pid before the program starts: puts it into its cgroups.
    std::function<void(pid_t)> account = {};
};

class Keeper {
  public:
    // Throws unavailable when this machine does not allow namespaces, and says what to do. What
    // fails because somebody has killed the keeper throws nothing: wait_for() says that it was.
    Keeper(const KeeperOptions& options, const KeeperOrder& order);
    ~Keeper();  // Kills what still runs.
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;

    pid_t pid() const { return pid_; }
    void terminate() const;
    void kill() const;
    // The last resort, for a keeper that does not obey: the kernel ends everything below it.
    void destroy() const;

    // Once the keeper has ended, or has said that it cannot because something hangs in the kernel.
    // An ending without a record (somebody killed the keeper) has a failure that says so, and the
    // log then ends with spec::node_directory::kCutMark.
    std::optional<Ending> wait_for(std::chrono::milliseconds patience);
    // For a keeper that not even destroy() ends: it is not waited for any more.
    void abandon() { abandoned_ = true; }

  private:
    void prepare(const KeeperOptions& options, const KeeperOrder& order);
    bool was_killed_unprepared();
    std::optional<Ending> written_ending() const;
    void send(char command) const;

    std::filesystem::path work_dir_;
    pid_t pid_ = -1;
    UniqueFd process_;
    UniqueFd command_;
    std::optional<Ending> ending_;
    bool abandoned_ = false;
};

// The body of gruca-keeper: returns the exit code of the keeper.
int run_keeper(const Clock& clock);

}  // namespace gruca::agent
