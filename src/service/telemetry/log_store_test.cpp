// The promises of service/telemetry/log_store.h.

#include "service/telemetry/log_store.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/temp_dir.h"

namespace gruca::service {
namespace {

class LogStoreTest : public testing::Test {
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

TEST_F(LogStoreTest, a_log_at_its_limit_says_so_and_takes_the_rest_without_keeping_it) {
    LogStore small(scratch.path() / "small", 10);
    EXPECT_EQ(small.append(log, 0, "0123456", at(1)), 7u);
    EXPECT_EQ(small.append(log, 7, "789abcdef", at(2)), 16u);
    const std::string kept = read_file(small.files(log).bytes);
    EXPECT_THAT(kept, testing::StartsWith("0123456789\n[gruca: this log reached its limit"));
    EXPECT_EQ(small.append(log, 16, "ghij", at(3)), 20u);
    EXPECT_EQ(read_file(small.files(log).bytes), kept);
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

TEST_F(LogStoreTest, the_index_is_little_endian) {
    const auto bytes = encode({.offset = 0x0102, .at_ms = 3});
    EXPECT_EQ(bytes[0], std::byte{2});
    EXPECT_EQ(bytes[1], std::byte{1});
    EXPECT_EQ(bytes[8], std::byte{3});
    EXPECT_EQ(decode_log_index_record(bytes.data()).offset, 0x0102u);
}

}  // namespace
}  // namespace gruca::service
