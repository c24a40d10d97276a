// The promises of service/telemetry/log_store.h.

#include "service/telemetry/log_store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "service/held_file.h"

namespace gruca::service {
namespace {

class LogStoreTest : public ::testing::Test {
  protected:
    std::string text() const { return read_file(store.files(log).bytes); }
    static TimePoint at(std::int64_t ms) { return time_from_ms(ms); }

    const TempDir scratch;
    const LogName log{.job = "job", .host = "algo-1"};
    LogStore store{scratch.path() / "logs"};
};

TEST_F(LogStoreTest, bytes_are_kept_in_order_and_once) {
    EXPECT_EQ(store.append(log, 0, "one\n", at(1)), 4u);
    EXPECT_EQ(store.append(log, 0, "one\ntwo\n", at(2)), 8u);  // Its answer was lost; sent again.
    EXPECT_EQ(store.append(log, 4, "two", at(3)), 8u);
    EXPECT_EQ(text(), "one\ntwo\n");
}

TEST_F(LogStoreTest, bytes_beyond_a_gap_are_not_taken) {
    store.append(log, 0, "abc", at(1));
    EXPECT_EQ(store.append(log, 5, "fgh", at(2)), 3u);
    EXPECT_EQ(text(), "abc");
    EXPECT_EQ(store.append(log, 3, "defgh", at(3)), 8u);
    EXPECT_EQ(text(), "abcdefgh");
}

TEST_F(LogStoreTest, any_mix_of_repeats_and_gaps_gives_the_same_bytes) {
    std::string whole;
    const Philox random(7, 0);
    for (std::uint64_t i = 0; i < 5000; ++i) whole += static_cast<char>(random.below(256, i));
    std::uint64_t size = 0;
    for (std::uint64_t i = 0; size < whole.size(); ++i) {
        const std::uint64_t offset = random.below(size + 20, 2 * i + 10'000);
        if (offset > whole.size()) continue;
        const std::uint64_t bytes = random.below(100, 2 * i + 10'001);
        size = store.append(log, offset, std::string_view(whole).substr(offset, bytes), at(5));
    }
    EXPECT_EQ(text(), whole);
}

TEST_F(LogStoreTest, a_new_store_over_the_same_directory_goes_on) {
    store.append(log, 0, "abc", at(1));
    LogStore again(scratch.path() / "logs");
    EXPECT_EQ(again.size(log), 3u);
    EXPECT_EQ(again.append(log, 0, "abcd", at(2)), 4u);
    EXPECT_EQ(text(), "abcd");
}

TEST_F(LogStoreTest, of_a_long_log_head_and_tail_are_kept_and_the_disk_does_not_fill) {
    constexpr std::uint64_t kBlock = 4096;
    const LogQuota quota{
        .head_bytes = 4 * kBlock, .tail_bytes = 4 * kBlock, .step_bytes = 2 * kBlock};
    LogStore small(scratch.path() / "small", quota);
    const std::uint64_t total = 100 * kBlock;
    std::string piece;
    for (std::uint64_t at = 0; at < total; at += piece.size()) {
        piece = std::string(std::min<std::uint64_t>(total - at, 1000),
                            static_cast<char>('a' + at % 26));
        EXPECT_EQ(small.append(log, at, piece, this->at(1)), at + piece.size());
    }
    EXPECT_EQ(small.size(log), total);
    struct stat facts = {};
    ASSERT_EQ(::stat(small.files(log).bytes.c_str(), &facts), 0);
    EXPECT_LE(static_cast<std::uint64_t>(facts.st_blocks) * 512, 14 * kBlock);
    const std::string kept = read_file(small.files(log).bytes);
    const LogGap gap = gap_of(quota, total);
    EXPECT_EQ(kept.substr(0, gap.begin).find('\0'), std::string::npos);
    EXPECT_EQ(kept.substr(gap.end).find('\0'), std::string::npos);
    EXPECT_GE(total - gap.end, quota.tail_bytes);
    EXPECT_EQ(small.append(log, 0, "again", this->at(2)), total);  // Sent twice, long ago.
}

TEST_F(LogStoreTest, times_are_those_of_the_index_before_and_after_appending) {
    EXPECT_FALSE(store.times(log));
    store.append(log, 0, "a", at(10));
    EXPECT_EQ(store.times(log)->last, at(10));
    store.append(log, 1, "b", at(30));
    store.append(log, 2, "c", at(20));  // The clock was set back.
    LogStore again(scratch.path() / "logs");
    for (LogStore* one : {&store, &again}) {
        EXPECT_EQ(one->times(log)->first, at(10));
        EXPECT_EQ(one->times(log)->last, at(30));
    }
}

TEST_F(LogStoreTest, what_a_dead_node_left_is_added_to_what_had_arrived) {
    store.append(log, 0, "sent ", at(1));
    write_file_atomic(scratch.path() / "left", "sent and not sent\n");
    store.append_rest_of(scratch.path() / "left", log, at(2));
    EXPECT_EQ(text(), "sent and not sent\n");
    store.append_rest_of(scratch.path() / "left", log, at(3));
    store.append_rest_of(scratch.path() / "absent", log, at(3));
    EXPECT_EQ(text(), "sent and not sent\n");
}

TEST_F(LogStoreTest, a_left_log_that_is_a_link_is_refused) {
    write_file_atomic(scratch.path() / "secret", "key");
    std::filesystem::create_symlink(scratch.path() / "secret", scratch.path() / "left");
    EXPECT_THROW(store.append_rest_of(scratch.path() / "left", log, at(1)), Error);
    EXPECT_EQ(store.size(log), 0u);
}

TEST_F(LogStoreTest, a_torn_index_record_is_overwritten) {
    store.append(log, 0, "a\n", at(10));
    std::ofstream(store.files(log).index, std::ios::app) << "torn";
    store.append(log, 2, "b\n", at(20));
    EXPECT_EQ(std::filesystem::file_size(store.files(log).index), 2 * kLogIndexRecordBytes);
}

TEST_F(LogStoreTest, records_of_bytes_that_a_power_cut_took_are_dropped_and_times_go_on) {
    store.append(log, 0, "a", at(10));
    store.append(log, 1, "bcd", at(20));
    store.append(log, 4, "e", at(30));
    store.append(log, 5, "f", at(40));
    std::filesystem::resize_file(store.files(log).bytes, 2);
    LogStore again(scratch.path() / "logs");
    again.append(log, 2, "CD", at(25));  // And the clock was set back.
    again.append(log, 4, "E", at(40));
    again.append(log, 5, "F", at(50));
    const std::string index = read_file(store.files(log).index);
    std::vector<std::pair<std::uint64_t, std::int64_t>> records;
    for (std::size_t i = 0; i < index.size(); i += kLogIndexRecordBytes) {
        const LogIndexRecord record = decode_log_index_record(bytes_of(index).data() + i);
        records.emplace_back(record.offset, record.at_ms);
    }
    using Record = std::pair<std::uint64_t, std::int64_t>;
    EXPECT_THAT(records,
                ::testing::ElementsAre(Record(0, 10), Record(1, 20), Record(2, 40), Record(5, 50)));
    EXPECT_EQ(again.times(log)->last, at(50));
}

TEST_F(LogStoreTest, a_log_that_a_power_cut_took_whole_begins_anew) {
    store.append(log, 0, "abc", at(10));
    std::filesystem::resize_file(store.files(log).bytes, 0);
    LogStore again(scratch.path() / "logs");
    again.append(log, 0, "abc", at(5));
    EXPECT_EQ(std::filesystem::file_size(store.files(log).index), kLogIndexRecordBytes);
    EXPECT_EQ(again.times(log)->first, at(10));
}

TEST_F(LogStoreTest, the_index_is_little_endian) {
    const auto bytes = encode({.offset = 0x0102, .at_ms = 3});
    EXPECT_EQ(bytes[0], std::byte{2});
    EXPECT_EQ(bytes[1], std::byte{1});
    EXPECT_EQ(bytes[8], std::byte{3});
    EXPECT_EQ(decode_log_index_record(bytes.data()).offset, 0x0102u);
}

TEST_F(LogStoreTest, appends_to_a_slow_disk_hold_so_many_threads_and_no_more) {
    std::vector<LogName> slow;
    std::vector<std::unique_ptr<testing::HeldFile>> held;
    for (int i = 0; i < kLogAppendsMax; ++i) {
        slow.push_back({.job = "slow", .host = "algo-" + std::to_string(i + 1)});
        store.append(slow.back(), 0, "one\n", at(1));
        held.push_back(std::make_unique<testing::HeldFile>(store.files(slow.back()).bytes));
    }
    if (!held.front()->is_held()) GTEST_SKIP() << "this file system has no leases";
    store.append(log, 0, "kept\n", at(1));
    EXPECT_TRUE(store.times(slow[0]));
    std::vector<std::jthread> threads;
    for (const LogName& one : slow) {
        threads.emplace_back([this, one] {
            while (run_guarded([&] { store.append_if_idle(one, 4, "two\n", at(2)); })) {
            }
        });
    }
    constexpr std::uint64_t kBytesMax = 20u << 20;
    // Takes bytes until every place is taken, and then none.
    std::uint64_t size = 5;
    std::optional<Error> refused;
    while (!refused && size < kBytesMax) {
        refused = run_guarded([&] { size = store.append_if_idle(log, size, "more\n", at(3)); });
    }
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), ErrorCode::unavailable);
    EXPECT_EQ(store.size(log), size);
    EXPECT_TRUE(store.times(slow[0])) << "the times of a log do not wait for its disk";
    held.clear();
    threads.clear();
    EXPECT_EQ(store.append_if_idle(log, size, "again\n", at(4)), size + 6);
    for (const LogName& one : slow) EXPECT_EQ(store.size(one), 8u);
}

}  // namespace
}  // namespace gruca::service
