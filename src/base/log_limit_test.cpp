#include "base/log_limit.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/temp_dir.h"

namespace gruca {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr LogLimits kLimits{.file_bytes_max = 1000, .files_kept = 2};

// stderr is a file for the time of a test.
class LogLimitTest : public testing::Test {
  protected:
    void SetUp() override {
        limit_log(log_, kLimits);
        write_to(log_);
    }
    void TearDown() override {
        limit_log("", {});
        ::dup2(terminal_.get(), STDERR_FILENO);
    }
    static void write_to(const fs::path& path) {
        const UniqueFd file = open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        ::dup2(file.get(), STDERR_FILENO);
    }
    fs::path numbered(int number) const { return log_.string() + "." + std::to_string(number); }

    const UniqueFd terminal_{::dup(STDERR_FILENO)};
    const TempDir scratch_;
    const fs::path log_ = scratch_.path() / "service.log";
};

TEST_F(LogLimitTest, a_full_file_makes_way_and_so_many_are_kept) {
    for (int i = 0; i < 100; ++i) log_info("line {} {}", i, std::string(100, 'x'));
    EXPECT_LE(fs::file_size(log_), kLimits.file_bytes_max + 200);
    EXPECT_LE(fs::file_size(numbered(1)), kLimits.file_bytes_max + 200);
    EXPECT_TRUE(fs::exists(numbered(2)));
    EXPECT_FALSE(fs::exists(numbered(3)));
    EXPECT_FALSE(fs::exists(log_.string() + ".next"));
    EXPECT_THAT(read_file(numbered(1)) + read_file(log_), HasSubstr("line 99 "));
    EXPECT_EQ(fs::status(log_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(LogLimitTest, no_line_between_two_files_is_lost) {
    for (int i = 0; i < 12; ++i) log_info("line {} {}", i, std::string(100, 'x'));
    ASSERT_TRUE(fs::exists(numbered(1)));
    ASSERT_FALSE(fs::exists(numbered(2)));
    const std::string all = read_file(numbered(1)) + read_file(log_);
    for (int i = 0; i < 12; ++i) EXPECT_THAT(all, HasSubstr("line " + std::to_string(i) + " "));
}

TEST_F(LogLimitTest, a_file_that_is_not_the_one_written_to_is_left_alone) {
    const fs::path other = scratch_.path() / "other.log";
    write_file_atomic(log_, std::string(5000, 'y'));
    write_to(other);
    log_info("hello");
    EXPECT_EQ(fs::file_size(log_), 5000u);
    EXPECT_FALSE(fs::exists(numbered(1)));
    EXPECT_THAT(read_file(other), HasSubstr("hello"));
}

TEST_F(LogLimitTest, a_file_that_cannot_be_followed_by_another_goes_on) {
    fs::create_directory(log_.string() + ".next");
    for (int i = 0; i < 20; ++i) log_info("line {} {}", i, std::string(100, 'x'));
    EXPECT_THAT(read_file(log_), HasSubstr("line 19 "));
    EXPECT_FALSE(fs::exists(numbered(1)));
}

}  // namespace
}  // namespace gruca
