// comm/thread_comm.h
//
// Ranks as threads of one process. As strict as any Comm: besides the promises of comm.h it notices
// at once when ranks call different collectives, and says which.
//
//   run_ranks(4, [&](Comm& comm) { ... });
//
// Thread-safe; each rank's Comm is used by one thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "comm/comm.h"

namespace gruca::comm {

struct ThreadGroupOptions {
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

// Owns the ranks of one group; outlives every use of them.
class ThreadGroup final {
  public:
    explicit ThreadGroup(int size, ThreadGroupOptions options = {});
    ~ThreadGroup();
    ThreadGroup(const ThreadGroup&) = delete;
    ThreadGroup& operator=(const ThreadGroup&) = delete;

    int size() const;
    Comm& comm(int rank);

  private:
    class State;
    class ThreadComm;

    std::unique_ptr<State> state_;
    std::vector<std::unique_ptr<ThreadComm>> ranks_;
};

// Runs `body` once for each rank, each on a thread of its own, and returns when all have returned.
// A rank that throws aborts the group; what it threw is thrown here, so the cause, not the
// cancelled collectives of the others.
void run_ranks(int size, const std::function<void(Comm&)>& body, ThreadGroupOptions options = {});

}  // namespace gruca::comm
