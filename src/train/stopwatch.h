// train/stopwatch.h
//
// Where a training's time goes: seconds by kind of work, since the last report. Owned by one
// thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "base/clock.h"

namespace gruca::train {

enum class Work { data, compute, comm, checkpoint };

class Stopwatch {
  public:
    explicit Stopwatch(const Clock& clock) : clock_(clock), at_(clock.steady_now()) {}

    // The time since the last call, of whatever kind, went into `work`.
    void lap(Work work) {
        const auto now = clock_.steady_now();
        seconds_[static_cast<std::size_t>(work)] +=
            std::chrono::duration<double>(now - at_).count();
        at_ = now;
    }

    double seconds(Work work) const { return seconds_[static_cast<std::size_t>(work)]; }
    double total() const { return seconds_[0] + seconds_[1] + seconds_[2] + seconds_[3]; }
    double share(Work work) const { return total() > 0 ? seconds(work) / total() : 0; }
    void restart() { seconds_ = {}; }

  private:
    const Clock& clock_;
    std::chrono::steady_clock::time_point at_;
    std::array<double, 4> seconds_ = {};
};

}  // namespace gruca::train
