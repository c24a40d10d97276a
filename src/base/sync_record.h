// base/sync_record.h
//
// For tests: what a program has synced to the disk. Including this puts a fsync of its own in the
// place of the system's, so at most one file of a program may.
//
// Thread-safe.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace gruca {

class SyncRecord {
  public:
    static SyncRecord& instance() {
        static SyncRecord record;
        return record;
    }

    void clear() {
        const std::lock_guard lock(mutex_);
        paths_.clear();
    }
    int count(const std::filesystem::path& path) {
        const std::lock_guard lock(mutex_);
        return static_cast<int>(std::count(paths_.begin(), paths_.end(), path.string()));
    }
    int total() {
        const std::lock_guard lock(mutex_);
        return static_cast<int>(paths_.size());
    }
    void add(int fd) {
        std::error_code failure;
        const auto path =
            std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), failure);
        const std::lock_guard lock(mutex_);
        paths_.push_back(path.string());
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> paths_;  // Guarded by mutex_.
};

}  // namespace gruca

extern "C" int fsync(int fd) {
    gruca::SyncRecord::instance().add(fd);
    return static_cast<int>(::syscall(SYS_fsync, fd));
}
