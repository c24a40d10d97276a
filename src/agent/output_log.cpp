#include "agent/output_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/boundary.h"
#include "base/file.h"

namespace gruca::agent {
namespace {

// How much may be appended before the kernel is asked again what is held.
constexpr std::uint64_t kLookEvery = 1u << 20;

// Tries it far behind the end of the file, where there is nothing to free.
bool can_free_parts_of(int fd) {
    constexpr off_t kFarAway = off_t{1} << 40;
    return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kFarAway, 4096) == 0;
}

}  // namespace

OutputLog::OutputLog(int fd, std::uint64_t held_bytes_max)
    : fd_(fd), held_bytes_max_(held_bytes_max), can_free_(can_free_parts_of(fd)) {}

void OutputLog::append(std::span<const char> bytes) {
    unseen_bytes_ += bytes.size();
    if (lost_ > 0 && !write(note())) {
        lost_ += bytes.size();
        return;
    }
    lost_ = 0;
    if (!write(bytes)) lost_ = bytes.size();
}

bool OutputLog::is_full() {
    if (!can_free_ || (!full_ && unseen_bytes_ < kLookEvery)) return false;
    unseen_bytes_ = 0;
    full_ = holds_too_much();
    return full_;
}

bool OutputLog::holds_too_much() const {
    struct stat facts = {};
    if (::fstat(fd_, &facts) != 0) return false;
    // What was freed is a hole at the file's beginning. The position moves; appending ignores it.
    const off_t first = ::lseek(fd_, 0, SEEK_DATA);
    if (first < 0) return false;  // No data at all.
    return static_cast<std::uint64_t>(facts.st_size - first) > held_bytes_max_;
}

void OutputLog::finish() {
    if (lost_ > 0) write(note());
    ::fsync(fd_);
}

std::string OutputLog::note() const {
    return "\ngruca: " + std::to_string(lost_) +
           " bytes of output are missing here: the log could not be written\n";
}

bool OutputLog::write(std::span<const char> bytes) const {
    return !run_guarded([&] { write_all(fd_, std::as_bytes(bytes)); });
}

}  // namespace gruca::agent
