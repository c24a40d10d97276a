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
//   * A log has at most bytes_max bytes. The first ones are kept, a line at the end says that the
//     rest is missing, and later bytes are taken from the sender and dropped: a flood never stops
//     a job.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace gruca::service {

constexpr std::uint64_t kLogBytesMax = 1ull << 30;  // Of one node of one job.

struct LogName {
    std::string job;
    std::string host;  // "algo-1"
};

struct LogFiles {
    std::filesystem::path bytes;
    std::filesystem::path index;
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
    explicit LogStore(std::filesystem::path directory, std::uint64_t bytes_max = kLogBytesMax);

    // Returns from where the sender should go on.
    std::uint64_t append(const LogName& log, std::uint64_t offset, std::string_view bytes,
                         TimePoint now);

    // Appends what a file holds beyond the bytes stored already.
    void append_rest_of(const std::filesystem::path& file, const LogName& log, TimePoint now);

    std::uint64_t size(const LogName& log) const;  // 0 for a log that does not exist.
    void sync(const LogName& log) const;           // Nothing to do for one that does not exist.
    LogFiles files(const LogName& log) const;

  private:
    std::mutex& mutex_of(const LogName& log);

    const std::filesystem::path directory_;
    const std::uint64_t bytes_max_;
    std::array<std::mutex, 64> mutexes_;  // Each guards the files of the logs that hash to it.
};

}  // namespace gruca::service
