// base/log_limit.h
//
// Keeps a log (base/log.h) from growing without end, where stderr is a file.
//
// limit_log is called once, by main; keep_log_limits is thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>

namespace gruca {

struct LogLimits {
    std::uint64_t file_bytes_max;
    int files_kept;  // Of those that are full, beside the one being written.
};

// From then on: when stderr is the file at `path` and that file is full, it becomes `path`.1, what
// was `path`.1 becomes `path`.2, and so on, and a new one goes on; stdout goes along where it is
// the same file. Elsewhere (a terminal, journald) nothing happens.
void limit_log(const std::filesystem::path& path, LogLimits limits);

// Called after every line.
void keep_log_limits();

}  // namespace gruca
