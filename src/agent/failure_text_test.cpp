#include "agent/failure_text.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class FailureText : public testing::Test {
  protected:
    std::string failure(std::string_view content) const {
        fs::create_directories(scratch.path() / "output");
        write_file_atomic(scratch.path() / "output" / "failure", content);
        return failure_file(scratch.path());
    }
    std::string lines(std::string_view content) const {
        write_file_atomic(scratch.path() / "log", content);
        return last_lines(scratch.path() / "log");
    }
    const TempDir scratch;
};

TEST_F(FailureText, the_failure_file_is_cut_at_a_character_and_made_utf8) {
    EXPECT_EQ(failure_file(scratch.path()), "");
    EXPECT_EQ(failure("bad data"), "bad data");
    EXPECT_EQ(failure(std::string(kFailureBytesMax - 1, 'x') + "ä"),
              std::string(kFailureBytesMax - 1, 'x'));
    EXPECT_EQ(failure("\x1b]0;title\x07\x1b[31mred\r\n\tat line 1\n"),
              "]0;title[31mred\n\tat line 1\n");
    const std::string broken = failure(std::string(2000, '\x80'));
    EXPECT_TRUE(is_utf8(broken));
    EXPECT_LE(broken.size(), kFailureBytesMax);
}

TEST_F(FailureText, the_last_lines_are_few_short_and_printable) {
    EXPECT_EQ(lines(""), "");
    EXPECT_EQ(lines("1\n2\n3\n4\n5\n6\n\n  \n7\n"), "3\n4\n5\n6\n7");
    EXPECT_EQ(lines("progress 1\rprogress 2\r\x1b[31mred\x1b[0m\n"),
              "progress 1\nprogress 2\n[31mred[0m");
    const std::string endless = lines(std::string(100'000, 'x'));
    EXPECT_GT(endless.size(), 100u);
    EXPECT_LE(endless.size(), kFailureBytesMax);
    EXPECT_TRUE(is_utf8(lines(std::string(1000, '\xff'))));
}

TEST_F(FailureText, a_kill_for_memory_is_named_and_a_plain_kill_is_not_called_one) {
    FailureFacts facts{
        .host = "algo-2",
        .status = {.code = 0, .signal = SIGKILL},
        .said = "",
        .cause = "",
        .lines = "epoch 3",
        .usage = {.memory_bytes_max = 3u << 20, .processor_seconds = 1, .kills_for_memory = 1}};
    EXPECT_THAT(failure_text(facts), HasSubstr("out of memory on algo-2: peak 3.0 MiB; the kernel "
                                               "killed a process of the job"));
    facts.usage.memory_limit_bytes = 4u << 20;
    facts.process = "python3";
    EXPECT_THAT(failure_text(facts), HasSubstr("out of memory on algo-2: limit 4.0 MiB, peak 3.0 "
                                               "MiB; the kernel killed the process python3"));
    facts.usage.limit_is_shared = true;
    EXPECT_THAT(failure_text(facts), HasSubstr("limit of all jobs together 4.0 MiB"));
    EXPECT_THAT(failure_text(facts), EndsWith("epoch 3"));
    facts.usage.kills_for_memory = 0;
    EXPECT_THAT(failure_text(facts), Not(HasSubstr("memory")));
    EXPECT_THAT(failure_text(facts), HasSubstr("signal 9"));
    facts.cause = "ValueError: shapes differ";
    facts.disk = "the disk is full";
    EXPECT_EQ(
        failure_text(facts),
        "the program on algo-2 was killed by signal 9 (Killed): ValueError: shapes differ; the "
        "disk is full; its last lines:\nepoch 3");
    facts.said = "my own words";
    EXPECT_EQ(failure_text(facts), "my own words");
}

}  // namespace
}  // namespace gruca::agent
