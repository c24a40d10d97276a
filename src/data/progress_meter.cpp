#include "data/progress_meter.h"

#include <algorithm>
#include <utility>

namespace gruca::data {
namespace {

constexpr auto kReportEvery = std::chrono::milliseconds(200);

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

}  // namespace

ProgressMeter::ProgressMeter(const Clock& clock, ProgressCallback callback)
    : clock_(clock),
      callback_(std::move(callback)),
      begun_(clock.steady_now()),
      stage_begun_(begun_),
      reported_(begun_) {}

void ProgressMeter::start(std::string stage, std::int64_t files, std::int64_t bytes) {
    progress_ = {.stage = std::move(stage), .files = files, .bytes = bytes};
    stage_begun_ = reported_ = clock_.steady_now();
}

void ProgressMeter::add(std::int64_t files, std::int64_t bytes) {
    progress_.files_done += files;
    progress_.bytes_done += bytes;
    report(false);
}

void ProgressMeter::set_done(std::int64_t bytes) {
    progress_.bytes_done = bytes;
    report(false);
}

void ProgressMeter::finish_stage() {
    report(true);
}

double ProgressMeter::seconds() const {
    return seconds_between(begun_, clock_.steady_now());
}

void ProgressMeter::report(bool always) {
    const auto now = clock_.steady_now();
    if (!callback_ || (!always && now - reported_ < kReportEvery)) return;
    reported_ = now;
    const double elapsed = seconds_between(stage_begun_, now);
    progress_.per_second = elapsed > 0 ? static_cast<double>(progress_.bytes_done) / elapsed : 0;
    const auto left =
        static_cast<double>(std::max<std::int64_t>(0, progress_.bytes - progress_.bytes_done));
    progress_.seconds_left = progress_.per_second > 0 ? left / progress_.per_second : 0;
    callback_(progress_);
}

}  // namespace gruca::data
