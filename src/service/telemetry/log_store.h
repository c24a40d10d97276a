// service/telemetry/log_store.h
//
// The logs of jobs: for each node of a job one file of raw bytes, exactly as its program wrote
// them, in order and once, and beside it an index that says when which bytes arrived. Reading them
// as lines is log_reader.h. Layout: docs/formats/log-files.md.
//
//   * A sender says where its bytes begin. Bytes the store has already are skipped; bytes beyond
//     what it has are not taken, and the sender learns from where to go on. So bytes sent twice,
//     or again after a crash of either side, appear once.
//   * Appended bytes survive the death of the service (they are in the kernel); after sync they
//     survive a power cut as well.
//   * The time of a byte never goes back as offsets grow, whatever the clock does.
//   * Of a log beyond LogQuota the head and the tail are kept. What lies between becomes a hole in
//     the file, so that offsets stay as they are; readers show a line in its place. A flood never
//     stops a job.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace gruca::service {

// What is kept of one node's log: its first bytes, at least so many of its last ones, and up to two
// steps more, because room is freed in steps.
struct LogQuota {
    std::uint64_t head_bytes = 512ull << 20;
    std::uint64_t tail_bytes = 512ull << 20;
    std::uint64_t step_bytes = 64ull << 20;
};

// The bytes that a log of `size` does not have any more; empty (begin == end) when it has all.
struct LogGap {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    bool holds(std::uint64_t offset) const { return begin <= offset && offset < end; }
};
LogGap gap_of(const LogQuota& quota, std::uint64_t size);

// At once for nodes, each on a thread of the service: appends, and syncs for nodes that free what
// is on disk. However slow the disk is, the other threads answer other calls.
constexpr int kLogAppendsMax = 5;
constexpr int kLogSyncsMax = 2;

struct LogName {
    std::string job;
    std::string host;  // "algo-1"
};

struct LogFiles {
    std::filesystem::path bytes;
    std::filesystem::path index;
    LogQuota quota = {};  // Of the store they are in.
};

// When the first and the last bytes of a log arrived.
struct LogTimes {
    TimePoint first = {};
    TimePoint last = {};
};

// A record of the index: the bytes from `offset` up to the next record's arrived at `at_ms`.
// Written little-endian, before the bytes it speaks of.
struct LogIndexRecord {
    std::uint64_t offset = 0;
    std::int64_t at_ms = 0;
};
constexpr std::size_t kLogIndexRecordBytes = 16;
std::array<std::byte, kLogIndexRecordBytes> encode(const LogIndexRecord& record);
LogIndexRecord decode_log_index_record(const std::byte* bytes);

class LogStore {
  public:
    explicit LogStore(std::filesystem::path directory, LogQuota quota = {});

    // Returns from where the sender should go on.
    std::uint64_t append(const LogName& log, std::uint64_t offset, std::string_view bytes,
                         TimePoint now);

    // As append, for nodes. Throws unavailable when kLogAppendsMax are busy, and takes nothing
    // then.
    std::uint64_t append_if_idle(const LogName& log, std::uint64_t offset, std::string_view bytes,
                                 TimePoint now);

    // Appends what a file holds beyond the bytes stored already.
    void append_rest_of(const std::filesystem::path& file, const LogName& log, TimePoint now);

    std::uint64_t size(const LogName& log) const;  // 0 for a log that does not exist.
    void sync(const LogName& log) const;           // Nothing to do for one that does not exist.
    // As sync, for nodes that ask while they print. Throws unavailable when kLogSyncsMax are busy.
    void sync_if_idle(const LogName& log);
    LogFiles files(const LogName& log) const;

    // From memory, but for the first time that somebody asks. Nothing for an empty log.
    std::optional<LogTimes> times(const LogName& log);

  private:
    std::mutex& mutex_of(const LogName& log);
    void note_times(const LogName& log, TimePoint at);

    const std::filesystem::path directory_;
    const LogQuota quota_;
    std::array<std::mutex, 64> mutexes_;  // Each guards the files of the logs that hash to it.
    std::atomic<int> appends_ = 0;
    std::atomic<int> syncs_ = 0;
    std::mutex times_mutex_;                 // Guards the member below; taken last.
    std::map<std::string, LogTimes> times_;  // By "<job>/<host>": of logs looked at or appended to.
};

}  // namespace gruca::service
