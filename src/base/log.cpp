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

// A message may hold what a job has said; no line of the log is of its making.
std::string one_line(std::string_view message) {
    std::string line;
    for (const char c : message) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n') {
            line += "\\n";
        } else if (byte < 0x20 || byte == 0x7f) {
            line += fmt::format("\\x{:02x}", byte);
        } else {
            line += c;
        }
    }
    return line;
}

}  // namespace

void set_up_log(std::string_view program, LogLevel level) {
    settings() = {.program = std::string(program), .level = level};
}

void log_line(LogLevel level, std::string_view message) {
    if (level < settings().level) return;
    constexpr std::array kNames = {"debug  ", "info   ", "warning", "error  "};
    const std::string line = fmt::format("{} {} {}: {}\n", iso8601(SystemClock().now()),
                                         kNames.at(static_cast<std::size_t>(level)),
                                         settings().program, one_line(message));
    // One write, so that lines of several threads and processes do not mix. A log that cannot be
    // written is not a reason to stop.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    keep_log_limits();
}

}  // namespace gruca
