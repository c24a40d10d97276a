#include "agent/reporter.h"

#include "base/boundary.h"
#include "base/log.h"

namespace gruca::agent {

Reporter::Reporter(ServiceLink& service)
    : service_(service), thread_([this](std::stop_token stop) { work(stop); }) {}

void Reporter::say(const spec::NodeReport& report) {
    const std::lock_guard lock(mutex_);
    latest_ = report;
    changed_.notify_all();
}

void Reporter::work(const std::stop_token& stop) {
    for (int failures = 0;;) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return latest_.has_value(); })) return;
        const spec::NodeReport report = *latest_;
        latest_.reset();
        lock.unlock();
        const std::optional<Error> failure = run_guarded([&] { service_.report(report); });
        if (!failure) {
            failures = 0;
            continue;
        }
        if (++failures == 1) log_warning("the report cannot be delivered now: {}", failure->what());
        lock.lock();
        if (!latest_) latest_ = report;
        changed_.wait_for(lock, stop, pause_after(failures), [] { return false; });
    }
}

}  // namespace gruca::agent
