// agent/fake_service.h
//
// A service for tests: says the orders that the test sets, keeps what it is told, and can be away.
// As strict about logs as the real one.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "agent/service_link.h"
#include "base/error.h"

namespace gruca::agent {

class FakeService final : public ServiceLink {
  public:
    spec::NodeOrder poll(std::int64_t seen, const std::stop_token& stop) override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [&] { return order_.version > seen || away_; });
        require_here();
        return order_;
    }
    void report(const spec::NodeReport& report) override {
        const std::lock_guard lock(mutex_);
        require_here();
        reports_.push_back(report);
        log_size_at_report_.push_back(log_.size());
        changed_.notify_all();
    }
    std::uint64_t append_log(std::uint64_t offset, std::string bytes) override {
        const std::lock_guard lock(mutex_);
        require_here();
        if (appends_refused_ < appends_to_refuse_ && (refuse_next_ = !refuse_next_)) {
            ++appends_refused_;
            throw Error(ErrorCode::unavailable, "other logs are being written to disk");
        }
        if (offset > log_.size()) {
            throw Error(ErrorCode::precondition_failed, "the log has fewer bytes");
        }
        const std::size_t known = log_.size() - static_cast<std::size_t>(offset);
        if (known < bytes.size()) log_ += bytes.substr(known);
        changed_.notify_all();
        return log_.size();
    }

    std::uint64_t sync_log() override {
        const std::lock_guard lock(mutex_);
        require_here();
        return log_.size();
    }

    void order(const std::function<void(spec::NodeOrder&)>& change) {
        const std::lock_guard lock(mutex_);
        change(order_);
        ++order_.version;
        changed_.notify_all();
    }
    void set_away(bool away) {
        const std::lock_guard lock(mutex_);
        away_ = away;
        changed_.notify_all();
    }
    // So many appends find a service that is too busy, every other one.
    void refuse_appends(int count) {
        const std::lock_guard lock(mutex_);
        appends_to_refuse_ = count;
    }
    int appends_refused() const {
        const std::lock_guard lock(mutex_);
        return appends_refused_;
    }
    void lose_log(std::size_t bytes_kept) {
        const std::lock_guard lock(mutex_);
        log_.resize(bytes_kept);
    }
    std::string log() const {
        const std::lock_guard lock(mutex_);
        return log_;
    }
    std::vector<spec::NodeReport> reports() const {
        const std::lock_guard lock(mutex_);
        return reports_;
    }
    // Waits for a report or a log that fits, and throws deadline_exceeded when none comes.
    spec::NodeReport wait_for(const std::function<bool(const spec::NodeReport&)>& fits) {
        std::unique_lock lock(mutex_);
        const auto found = [&] { return !reports_.empty() && fits(reports_.back()); };
        if (!changed_.wait_for(lock, kPatience, found)) {
            throw Error(ErrorCode::deadline_exceeded, "the report that is waited for never came");
        }
        return reports_.back();
    }
    spec::NodeReport wait_for(spec::NodePhase phase) {
        return wait_for([&](const auto& report) { return report.phase == phase; });
    }
    void wait_for_log(const std::string& text) {
        std::unique_lock lock(mutex_);
        const auto found = [&] { return log_.find(text) != std::string::npos; };
        if (!changed_.wait_for(lock, kPatience, found)) {
            throw Error(ErrorCode::deadline_exceeded, "never in the log: " + text);
        }
    }
    // Bytes of log that the service had when the last report came.
    std::size_t log_size_at_last_report() const {
        const std::lock_guard lock(mutex_);
        return log_size_at_report_.empty() ? 0 : log_size_at_report_.back();
    }

  private:
    static constexpr std::chrono::seconds kPatience{30};

    void require_here() const {
        if (away_) throw Error(ErrorCode::unavailable, "the service is away");
    }

    mutable std::mutex mutex_;  // Guards everything below.
    std::condition_variable_any changed_;
    spec::NodeOrder order_;
    std::vector<spec::NodeReport> reports_;
    std::vector<std::size_t> log_size_at_report_;
    std::string log_;
    bool away_ = false;
    int appends_to_refuse_ = 0;
    int appends_refused_ = 0;
    bool refuse_next_ = false;
};

}  // namespace gruca::agent
