#include "agent/output_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gruca::agent {
namespace {

// How much may be appended before the kernel is asked again what is held.
constexpr std::uint64_t kLookEvery = 1u << 20;

std::string note_of(std::uint64_t lost) {
    return "\ngruca: " + std::to_string(lost) +
           " bytes of output are missing here: the log could not be written\n";
}

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
    const std::size_t taken = write_notes() ? write(bytes) : 0;
    lost_ += bytes.size() - taken;
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
    write_notes();
    ::fsync(fd_);
}

// One that was begun is finished before anything else; what is lost meanwhile is for the next.
bool OutputLog::write_notes() {
    if (note_.empty() && lost_ == 0) return true;
    if (note_.empty()) {
        const std::string whole = note_of(lost_);
        const std::size_t taken = write(whole);
        if (taken == 0) return false;
        lost_ = 0;
        note_ = whole.substr(taken);
    } else {
        note_.erase(0, write(note_));
    }
    return note_.empty() && write_notes();
}

// How many bytes the log took, from the first on.
std::size_t OutputLog::write(std::span<const char> bytes) const {
    std::size_t taken = 0;
    while (taken < bytes.size()) {
        const ssize_t wrote = ::write(fd_, bytes.data() + taken, bytes.size() - taken);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) break;
        taken += static_cast<std::size_t>(wrote);
    }
    return taken;
}

}  // namespace gruca::agent
