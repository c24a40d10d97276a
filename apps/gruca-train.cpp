// The built-in trainer, image gruca/llm-trainer; and the command that continues texts.

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "base/boundary.h"
#include "base/clock.h"
#include "base/log.h"
#include "train/command_line.h"

namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set by a signal handler");

void ask_to_stop(int) {
    stop_asked = true;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace gruca;
    set_up_log("gruca-train", LogLevel::info);
    struct sigaction on_stop {};
    on_stop.sa_handler = ask_to_stop;
    on_stop.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &on_stop, nullptr);

    const SystemClock clock;
    int code = 0;
    const auto failed = run_guarded([&] {
        code = train::run_command({.arguments = {argv + 1, argv + argc},
                                   .environment =
                                       [](const char* name) {
                                           const char* value = std::getenv(name);
                                           return std::string(value == nullptr ? "" : value);
                                       },
                                   .out = std::cout,
                                   .clock = clock,
                                   .stop_asked = stop_asked});
    });
    if (!failed) return code;
    std::cerr << "gruca-train: " << failed->message() << std::endl;
    return exit_code(failed->code());
}
