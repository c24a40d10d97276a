// train/command_line.h
//
// gruca-train's command line: train, generate, logits, reference. Everything it needs of the
// process comes in.
#pragma once

#include <atomic>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.h"

namespace gruca::train {

struct Process {
    std::vector<std::string> arguments;                   // Without the program's name.
    std::function<std::string(const char*)> environment;  // Empty when not set.
    std::ostream& out;
    const Clock& clock;
    const std::atomic<bool>& stop_asked;
};

// Returns the exit code of a training; other commands throw what went wrong.
int run_command(const Process& process);

}  // namespace gruca::train
