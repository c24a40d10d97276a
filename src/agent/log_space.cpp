#include "agent/log_space.h"

#include <fcntl.h>

#include <cerrno>

#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"

namespace gruca::agent {
namespace {

constexpr std::uint64_t kBlockBytes = 4096;

}  // namespace

LogSpace::LogSpace(const std::filesystem::path& log, ServiceLink& service, LogSpaceOptions options)
    : file_(open_file(log, O_RDWR)),
      service_(service),
      options_(options),
      thread_([this](std::stop_token stop) { work(stop); }) {}

void LogSpace::note_stored(std::uint64_t offset) {
    const std::lock_guard lock(mutex_);
    stored_ = offset;
    changed_.notify_all();
}

void LogSpace::work(const std::stop_token& stop) {
    for (int failures = 0;;) {
        {
            std::unique_lock lock(mutex_);
            if (failures > 0) {
                changed_.wait_for(lock, stop, pause_after(failures), [] { return false; });
            }
            const std::uint64_t enough = freed_ + options_.kept_bytes + options_.step_bytes;
            changed_.wait(lock, stop, [&] { return stored_ >= enough; });
            if (stop.stop_requested()) return;
        }
        const std::uint64_t freed_before = freed_;
        bool able = true;
        const std::optional<Error> failure = run_guarded([&] {
            const std::uint64_t durable = service_.sync_log();
            if (durable > options_.kept_bytes) able = free_up_to(durable - options_.kept_bytes);
        });
        if (!able) return;
        failures = freed_ > freed_before ? 0 : failures + 1;
        if (failure && failures == 1) log_warning("no room can be freed: {}", failure->what());
    }
}

bool LogSpace::free_up_to(std::uint64_t offset) {
    const std::uint64_t until = offset / kBlockBytes * kBlockBytes;
    if (until <= freed_) return true;
    if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(freed_), static_cast<off_t>(until - freed_)) != 0) {
        if (errno != EOPNOTSUPP) throw_errno("cannot free the part of the log that is stored");
        log_warning("the file system of this node cannot free a part of a file: its log grows");
        return false;
    }
    freed_ = until;
    return true;
}

}  // namespace gruca::agent
