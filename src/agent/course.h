// agent/course.h
//
// What an agent does next, as a pure function of where its node is and what the service orders.
// The agent asks again after everything that happens, so an order that comes late, twice or in the
// middle of something needs no case of its own.
#pragma once

#include <chrono>
#include <optional>

#include "spec/node.h"
#include "spec/node_directory.h"

namespace gruca::agent {

// Beyond it, a keeper that was told to kill is killed itself,
constexpr std::chrono::seconds kKeeperGrace =
    spec::node_directory::kEndingWithin + std::chrono::seconds(10);
// and beyond it, one that even so does not end is given up.
constexpr std::chrono::seconds kDestroyGrace{10};

using Instant = std::chrono::steady_clock::time_point;

// Where a node is. Changed by the agent as things happen.
struct Course {
    spec::NodePhase phase = spec::NodePhase::ready;
    bool working = false;                    // A download, an upload or the like runs.
    bool cancelling = false;                 // It has been told to stop.
    bool running = false;                    // The program runs.
    std::optional<Instant> terminated = {};  // When it was told to end,
    std::optional<Instant> killed = {};      // and when it was killed.
    std::optional<Instant> destroyed = {};   // When its keeper was.
    bool settled = false;                    // What the program left behind is in the store,
    bool closing_log = false;                // the last log bytes are on their way,
    bool log_complete = false;               // and have arrived.
    bool given_up = false;                   // It cannot go on; only the log still counts.
    bool told = false;                       // The end has been reported.
};

enum class Step {
    wait,
    download,
    start_program,
    skip_program,  // Stopped before it began.
    terminate,
    kill,
    destroy,  // The keeper does not obey.
    abandon,  // Not even that helps: something hangs in the kernel.
    cancel,   // What is working.
    settle,
    close_log,
    tell_end,
    assemble,
    leave,
};

Step next_step(const Course& course, const spec::NodeOrder& order, Instant now);

// When to ask again although nothing has happened.
std::optional<Instant> next_deadline(const Course& course, const spec::NodeOrder& order);

}  // namespace gruca::agent
