// agent/log_space.h
//
// Frees the beginning of a node's log once the service has it on disk, so that a log of any length
// takes a bounded room on the node. Offsets stay as they are: what is freed becomes a hole, which
// reads as zeros and which nobody reads. The last kLogKeptBytes stay, for the reason of a failure.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include "agent/service_link.h"
#include "base/file.h"

namespace gruca::agent {

// The service is asked to sync, and room is freed, in steps of this.
constexpr std::uint64_t kLogFreeStepBytes = 64u << 20;
constexpr std::uint64_t kLogKeptBytes = 1u << 20;

struct LogSpaceOptions {
    std::uint64_t step_bytes = kLogFreeStepBytes;
    std::uint64_t kept_bytes = kLogKeptBytes;
};

class LogSpace {
  public:
    LogSpace(const std::filesystem::path& log, ServiceLink& service, LogSpaceOptions options = {});

    // The service has the log up to here, not yet on disk.
    void note_stored(std::uint64_t offset);

  private:
    void work(const std::stop_token& stop);
    bool free_up_to(std::uint64_t offset);  // False: this file system cannot.

    const UniqueFd file_;
    ServiceLink& service_;
    const LogSpaceOptions options_;
    std::uint64_t freed_ = 0;  // The thread's own.
    std::mutex mutex_;         // Guards the member below.
    std::uint64_t stored_ = 0;
    std::condition_variable_any changed_;
    std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace gruca::agent
