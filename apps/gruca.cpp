// The command line. Builds the world that commands see (cli/context.h), and decides nothing.

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/aws_api.h"
#include "cli/gruca.h"

namespace {

volatile std::sig_atomic_t interrupts = 0;  // Written by a signal handler.

void count_interrupt(int) {
    interrupts = interrupts + 1;
}

bool interrupted() {
    struct sigaction action {};
    action.sa_handler = count_interrupt;
    static const int installed = ::sigaction(SIGINT, &action, nullptr);
    return installed == 0 && interrupts > 0;
}

std::optional<std::string> environment(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
}

void become(const std::vector<std::string>& words) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::cout.flush();
    ::execv(argv[0], argv.data());
    gruca::throw_errno("cannot run " + words[0]);
}

}  // namespace

int main(int argc, char** argv) {
    gruca::set_up_log("gruca", gruca::LogLevel::warning);
    std::signal(SIGPIPE, SIG_DFL);
    const gruca::SystemClock clock;
    gruca::cli::Context context{
        .out = std::cout,
        .err = std::cerr,
        .in = std::cin,
        .clock = clock,
        .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
        .program_dir = std::filesystem::read_symlink("/proc/self/exe").parent_path(),
        .environment = environment,
        .connect =
            [&](const gruca::cli::Installation& service, bool patient) {
                return gruca::cli::connect_to(service, patient, clock,
                                              [] { return interrupts > 0; });
            },
        .pause = [](gruca::Duration time) { std::this_thread::sleep_for(time); },
        .interrupted = interrupted,
        .become = become,
    };
    return gruca::cli::run_gruca(context, {argv + 1, argv + argc});
}
