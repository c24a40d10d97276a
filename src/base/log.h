// base/log.h
//
// What a program says to its operator: one line a message on stderr, time first, values last.
//
//   2026-12-01T09:30:00.123Z info  service: listening on 127.0.0.1:7717
//
// Secrets never go into a log line. Thread-safe.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gruca {

enum class LogLevel { debug, info, warning, error };

// Messages below this level are dropped. `program` stands in every line. Call once, from main.
void set_up_log(std::string_view program, LogLevel level);

void log_line(LogLevel level, std::string_view message);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
    log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
    log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
    log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
    log_line(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gruca
