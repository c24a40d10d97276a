// agent/failure_text.h
//
// Why a training program failed, in words for a FailureReason: what the program itself said in
// /opt/ml/output/failure, or else what its agent saw. Pure functions, but for the reading.
#pragma once

#include <filesystem>
#include <string>

#include "agent/keeper_order.h"
#include "agent/node_cgroups.h"

namespace gruca::agent {

constexpr std::size_t kFailureBytesMax = 1024;

// The first kFailureBytesMax bytes of output/failure beneath `ml`, as UTF-8; empty when the program
// wrote none. Links are not followed.
std::string failure_file(const std::filesystem::path& ml);

// The last lines of a log, shortened, without control characters.
std::string last_lines(const std::filesystem::path& log);
// agent/exception_line.h, of the last kCauseBytes of a log, likewise.
constexpr std::size_t kCauseBytes = 256u << 10;
std::string cause_in(const std::filesystem::path& log);

struct FailureFacts {
    std::string host;
    ExitStatus status;
    std::string said;   // failure_file
    std::string cause;  // cause_in
    std::string lines;  // last_lines
    Usage usage;
    std::string disk = {};     // disk_full_text
    std::string process = {};  // That the kernel killed for want of memory; empty: not known.
};
// "out of memory on algo-2: limit 64.0 MiB, peak 64.0 MiB; the kernel killed the process python3"
std::string out_of_memory_text(const FailureFacts& facts);
std::string failure_text(const FailureFacts& facts);

}  // namespace gruca::agent
