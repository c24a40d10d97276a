// net/call_wait.h
//
// How long one call of a client waits for its server: until the time for it is over, for as long as
// bytes move fast enough, and not when it is cancelled.
//
// Owned by the call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.h"

namespace gruca::net {

// A call that moves fewer than `bytes` in each `time` of waiting has stalled.
struct StallLimit {
    std::chrono::milliseconds time;
    std::uint64_t bytes;
};

class CallWait {
  public:
    // `time` is for the whole call. `cancelled` may be empty and outlives this object.
    CallWait(std::optional<std::chrono::milliseconds> time, std::optional<StallLimit> stall,
             const std::function<bool()>& cancelled);

    // Which of the poll events have happened; nothing when the time is over, or `time_max`, or when
    // it has stalled. Throws cancelled.
    std::optional<short> wait(int fd, short events,
                              std::optional<std::chrono::milliseconds> time_max = {});
    void moved(std::uint64_t bytes);
    void throw_if_cancelled() const;

  private:
    const SystemClock clock_;
    const std::optional<std::chrono::steady_clock::time_point> end_;
    const std::optional<StallLimit> stall_;
    const std::function<bool()>& cancelled_;
    std::uint64_t moved_ = 0;
    std::chrono::steady_clock::duration patience_left_{0};  // Of stall_.
};

}  // namespace gruca::net
