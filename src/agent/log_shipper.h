// agent/log_shipper.h
//
// Brings the log file of a node to the service while it grows: every byte, in order, once. The
// service is the judge of what it has; after any doubt (a restart, a refused offset) it is asked,
// and shipping goes on from there. A service that is away is waited for.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "agent/log_space.h"
#include "agent/service_link.h"
#include "base/file.h"

namespace gruca::agent {

constexpr std::size_t kLogPieceBytes = 1u << 20;
// After a piece that was not full the next one waits so long for more to come with it: a program
// that prints thousands of lines a second costs a hundred calls a second, and no line waits longer.
constexpr std::chrono::milliseconds kLogCollectTime{10};

class LogShipper {
  public:
    // Makes the file when it is missing.
    LogShipper(const std::filesystem::path& log, ServiceLink& service);
    ~LogShipper();

    // Says that the file does not grow any more; calls `complete` once, from this object's thread,
    // when the service has every byte. Only the first call counts.
    void finish(std::function<void()> complete);

  private:
    void ship(const std::stop_token& stop);
    void catch_up(const std::stop_token& stop);
    void wait_for_more();
    std::size_t ship_piece();  // Returns its bytes; 0 when there are no more.
    void collect(const std::stop_token& stop);

    const UniqueFd file_;
    ServiceLink& service_;
    LogSpace space_;
    UniqueFd changes_;  // inotify on the file.
    UniqueFd wake_;
    bool asked_ = false;  // offset_ is what the service has said.
    std::uint64_t offset_ = 0;
    std::mutex mutex_;  // Guards the two members below.
    std::condition_variable_any stopped_;
    std::function<void()> complete_;
    std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace gruca::agent
