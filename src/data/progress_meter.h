// data/progress_meter.h
//
// Turns "so much is done" into what a person wants to see, a few times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "data/commands.h"

namespace gruca::data {

// Owned by one thread.
class ProgressMeter {
  public:
    ProgressMeter(const Clock& clock, ProgressCallback callback);

    // Starts another stage: its rate and its remaining time begin anew.
    void start(std::string stage, std::int64_t files, std::int64_t bytes);
    void add(std::int64_t files, std::int64_t bytes);
    void set_done(std::int64_t bytes);
    void finish_stage();  // Reports whatever the time is.

    double seconds() const;  // Since construction.

  private:
    void report(bool always);

    const Clock& clock_;
    const ProgressCallback callback_;
    const std::chrono::steady_clock::time_point begun_;
    std::chrono::steady_clock::time_point stage_begun_;
    std::chrono::steady_clock::time_point reported_;
    DataProgress progress_;
};

}  // namespace gruca::data
