#include "service/telemetry/log_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/check.h"
#include "base/durable_directories.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "service/telemetry/log_reader.h"

namespace gruca::service {
namespace {

constexpr std::size_t kCopyPieceBytes = 1u << 20;

std::uint64_t size_of(int fd, const std::filesystem::path& path) {
    struct stat facts = {};
    if (::fstat(fd, &facts) != 0) throw_errno("cannot ask for the size of " + path.string());
    return static_cast<std::uint64_t>(facts.st_size);
}

void write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes,
              const std::filesystem::path& path) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) throw_errno("cannot write the log " + path.string());
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
        offset += static_cast<std::uint64_t>(wrote);
    }
}

LogIndexRecord read_record(int fd, std::uint64_t at, const std::filesystem::path& path) {
    std::array<std::byte, kLogIndexRecordBytes> bytes = {};
    if (::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)) < 0) {
        throw_errno("cannot read " + path.string());
    }
    return decode_log_index_record(bytes.data());
}

// Notes in the index that the bytes from `offset`, which is the log's size, arrive now, unless it
// says so already. Returns the time that they have, which is later when the clock was set back.
TimePoint note_time(const LogFiles& files, std::uint64_t offset, TimePoint now) {
    const UniqueFd index = open_file(files.index, O_RDWR | O_CREAT, 0600);
    const std::uint64_t size = size_of(index.get(), files.index);
    std::uint64_t end = size / kLogIndexRecordBytes * kLogIndexRecordBytes;
    std::int64_t at_ms = to_ms(now);
    bool is_noted = false;
    // Records of bytes that the log does not have: a crash, or a power cut, came between.
    for (; end > 0; end -= kLogIndexRecordBytes) {
        const LogIndexRecord last =
            read_record(index.get(), end - kLogIndexRecordBytes, files.index);
        at_ms = std::max(at_ms, last.at_ms);
        is_noted = last.offset < offset && last.at_ms == at_ms;
        if (last.offset < offset) break;
    }
    if (end < size && ::ftruncate(index.get(), static_cast<off_t>(end)) != 0) {
        throw_errno("cannot shorten " + files.index.string());
    }
    if (!is_noted)
        write_at(index.get(), end, encode({.offset = offset, .at_ms = at_ms}), files.index);
    return time_from_ms(at_ms);
}

// Frees the gap of a log that has just grown from `size_before` to `size`. One step less than what
// readers do not show any more, so that one in the middle of a page finds its bytes. Where the file
// system cannot, the log is longer than its quota and loses nothing by it.
void free_gap(int fd, const LogQuota& quota, std::uint64_t size_before, std::uint64_t size) {
    const std::uint64_t end = gap_of(quota, size).end;
    if (end == gap_of(quota, size_before).end || end < quota.head_bytes + 2 * quota.step_bytes) {
        return;
    }
    ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(quota.head_bytes),
                static_cast<off_t>(end - quota.step_bytes - quota.head_bytes));
}

// One of a limited number at once.
class Place {
  public:
    Place(std::atomic<int>& taken, int taken_max) : taken_(taken) {
        if (++taken_ <= taken_max) return;
        --taken_;
        throw Error(ErrorCode::unavailable, "other logs are being written to disk; ask again");
    }
    ~Place() { --taken_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

  private:
    std::atomic<int>& taken_;
};

UniqueFd open_for_append(const LogFiles& files) {
    UniqueFd fd(::open(files.bytes.c_str(), O_RDWR | O_CLOEXEC));
    if (fd.is_open() || errno != ENOENT) {
        if (!fd.is_open()) throw_errno("cannot open the log " + files.bytes.string());
        return fd;
    }
    std::filesystem::create_directories(files.bytes.parent_path());
    return open_file(files.bytes, O_RDWR | O_CREAT, 0600);
}

}  // namespace

std::array<std::byte, kLogIndexRecordBytes> encode(const LogIndexRecord& record) {
    std::array<std::byte, kLogIndexRecordBytes> bytes = {};
    for (std::size_t i = 0; i < 8; ++i) {
        bytes[i] = static_cast<std::byte>(record.offset >> (8 * i) & 0xff);
        bytes[8 + i] =
            static_cast<std::byte>(static_cast<std::uint64_t>(record.at_ms) >> (8 * i) & 0xff);
    }
    return bytes;
}

LogIndexRecord decode_log_index_record(const std::byte* bytes) {
    std::uint64_t offset = 0;
    std::uint64_t at_ms = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        offset |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
        at_ms |= static_cast<std::uint64_t>(bytes[8 + i]) << (8 * i);
    }
    return {.offset = offset, .at_ms = static_cast<std::int64_t>(at_ms)};
}

LogGap gap_of(const LogQuota& quota, std::uint64_t size) {
    if (size <= quota.head_bytes + quota.tail_bytes + quota.step_bytes) {
        return {.begin = quota.head_bytes, .end = quota.head_bytes};
    }
    const std::uint64_t end = (size - quota.tail_bytes) / quota.step_bytes * quota.step_bytes;
    return {.begin = quota.head_bytes, .end = end};
}

LogStore::LogStore(std::filesystem::path directory, LogQuota quota)
    : directory_(std::move(directory)), quota_(quota) {
    create_directories_durably(directory_);
}

LogFiles LogStore::files(const LogName& log) const {
    for (const std::string& part : {log.job, log.host}) {
        CHECK(!part.empty() && part[0] != '.' && part.find('/') == std::string::npos,
              "not the name of a job or host: '{}'", part);
    }
    const std::filesystem::path base = directory_ / log.job / log.host;
    return {.bytes = base.string() + ".log", .index = base.string() + ".idx", .quota = quota_};
}

std::mutex& LogStore::mutex_of(const LogName& log) {
    return mutexes_[std::hash<std::string>()(log.job + '/' + log.host) % mutexes_.size()];
}

std::uint64_t LogStore::append(const LogName& log, std::uint64_t offset, std::string_view bytes,
                               TimePoint now) {
    const LogFiles names = files(log);
    const std::lock_guard lock(mutex_of(log));
    const UniqueFd fd = open_for_append(names);
    const std::uint64_t size = size_of(fd.get(), names.bytes);
    if (offset > size) return size;
    if (size - offset >= bytes.size()) return size;
    bytes.remove_prefix(static_cast<std::size_t>(size - offset));
    note_times(log, note_time(names, size, now));
    write_at(fd.get(), size, bytes_of(bytes), names.bytes);
    free_gap(fd.get(), quota_, size, size + bytes.size());
    return size + bytes.size();
}

std::uint64_t LogStore::append_if_idle(const LogName& log, std::uint64_t offset,
                                       std::string_view bytes, TimePoint now) {
    const Place place(appends_, kLogAppendsMax);
    return append(log, offset, bytes, now);
}

void LogStore::append_rest_of(const std::filesystem::path& file, const LogName& log,
                              TimePoint now) {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.is_open() && errno == ENOENT) return;
    if (!fd.is_open()) throw_errno("cannot open the log a node left: " + file.string());
    std::uint64_t at = size(log);
    std::string piece(kCopyPieceBytes, '\0');
    while (true) {
        const ssize_t got = ::pread(fd.get(), piece.data(), piece.size(), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno("cannot read the log a node left: " + file.string());
        if (got == 0) return;
        at = append(log, at, std::string_view(piece).substr(0, static_cast<std::size_t>(got)), now);
    }
}

std::uint64_t LogStore::size(const LogName& log) const {
    struct stat facts = {};
    const LogFiles names = files(log);
    if (::stat(names.bytes.c_str(), &facts) == 0) return static_cast<std::uint64_t>(facts.st_size);
    if (errno == ENOENT) return 0;
    throw_errno("cannot ask for the size of " + names.bytes.string());
}

void LogStore::sync(const LogName& log) const {
    const LogFiles names = files(log);
    for (const std::filesystem::path& path : {names.index, names.bytes}) {
        const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd.is_open() && errno == ENOENT) return;
        if (!fd.is_open()) throw_errno("cannot open " + path.string());
        if (::fsync(fd.get()) != 0) throw_errno("cannot sync " + path.string());
    }
    sync_directory(names.bytes.parent_path());
    sync_directory(directory_);
}

void LogStore::sync_if_idle(const LogName& log) {
    const Place place(syncs_, kLogSyncsMax);
    sync(log);
}

void LogStore::note_times(const LogName& log, TimePoint at) {
    const std::lock_guard lock(times_mutex_);
    const auto known = times_.find(log.job + '/' + log.host);
    if (known != times_.end()) known->second.last = at;
}

std::optional<LogTimes> LogStore::times(const LogName& log) {
    const std::string name = log.job + '/' + log.host;
    const auto remembered = [&]() -> std::optional<LogTimes> {
        const std::lock_guard lock(times_mutex_);
        const auto known = times_.find(name);
        return known == times_.end() ? std::nullopt : std::optional(known->second);
    };
    if (const auto known = remembered()) return known;  // Without waiting for an append.
    const std::lock_guard files_lock(mutex_of(log));    // Nothing is appended meanwhile.
    if (const auto known = remembered()) return known;
    LogReader reader(files(log), false);
    if (!reader.first_time()) return std::nullopt;
    const LogTimes found{.first = *reader.first_time(), .last = *reader.last_time()};
    const std::lock_guard lock(times_mutex_);
    times_.emplace(name, found);
    return found;
}

}  // namespace gruca::service
