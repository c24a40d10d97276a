// base/clock.h
//
// Time as an argument. Nothing outside base and apps asks the operating system for the time; it is
// given a TimePoint, or a Clock, so that a test can say what time it is.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace gruca {

// Wall-clock time, UTC, in milliseconds: what the API shows and the database keeps.
using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;
using Duration = std::chrono::milliseconds;

// Thread-safe.
class Clock {
  public:
    virtual ~Clock() = default;
    virtual TimePoint now() const = 0;
    // Never goes back and does not follow the wall clock: for measuring and for deadlines.
    virtual std::chrono::steady_clock::time_point steady_now() const = 0;
};

class SystemClock final : public Clock {
  public:
    TimePoint now() const override;
    std::chrono::steady_clock::time_point steady_now() const override;
};

// Stands still until told otherwise. For tests.
class ManualClock final : public Clock {
  public:
    explicit ManualClock(TimePoint start) : start_(start) {}
    TimePoint now() const override { return start_ + Duration(elapsed_ms_.load()); }
    std::chrono::steady_clock::time_point steady_now() const override {
        return std::chrono::steady_clock::time_point(Duration(elapsed_ms_.load()));
    }
    void advance(Duration by) { elapsed_ms_ += by.count(); }

  private:
    const TimePoint start_;
    std::atomic<std::int64_t> elapsed_ms_ = 0;
};

inline std::int64_t to_ms(TimePoint time) {
    return time.time_since_epoch().count();
}
inline TimePoint time_from_ms(std::int64_t ms) {
    return TimePoint(Duration(ms));
}

std::string iso8601(TimePoint time);        // "2026-12-01T09:30:00.123Z"
std::string iso8601_basic(TimePoint time);  // "20261201T093000Z", the form SigV4 signs.

// Reads either form above, with or without the fraction; throws invalid_argument.
TimePoint time_from_iso8601(const std::string& text);

}  // namespace gruca
