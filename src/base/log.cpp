#include "base/log.h"

#include <unistd.h>

#include <array>

#include "base/clock.h"
#include "base/log_limit.h"

namespace gruca {
namespace {

struct LogSettings {
    std::string program = "gruca";
    LogLevel level = LogLevel::info;
};

// Written once by main before other threads exist, only read afterwards.
LogSettings& settings() {
    static LogSettings instance;
    return instance;
}

}  // namespace

void set_up_log(std::string_view program, LogLevel level) {
    settings() = {.program = std::string(program), .level = level};
}

void log_line(LogLevel level, std::string_view message) {
    if (level < settings().level) return;
    constexpr std::array kNames = {"debug  ", "info   ", "warning", "error  "};
    const std::string line =
        fmt::format("{} {} {}: {}\n", iso8601(SystemClock().now()),
                    kNames.at(static_cast<std::size_t>(level)), settings().program, message);
    // One write, so that lines of several threads and processes do not mix. A log that cannot be
    // written is not a reason to stop.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    keep_log_limits();
}

}  // namespace gruca
