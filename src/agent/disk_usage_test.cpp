#include "agent/disk_usage.h"

#include <sys/mount.h>

#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(DiskUsage, a_full_disk_is_named_with_its_largest_files_as_the_program_knows_them) {
    const TempDir scratch;
    if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
        GTEST_SKIP() << "this user cannot mount a small disk";
    }
    const fs::path work = scratch.path() / "work";
    fs::create_directories(work / "ml" / "model");
    fs::create_directories(work / "tmp");
    write_file_atomic(work / "ml" / "model" / "weights", std::string(2u << 20, 'x'));
    write_file_atomic(work / "tmp" / "cache", std::string(1u << 20, 'x'));
    write_file_atomic(work / "log", std::string(1u << 10, 'x'));
    fs::create_directory_symlink("/", work / "ml" / "everything");
    EXPECT_THAT(disk_full_text(work, SystemClock()),
                AllOf(HasSubstr("the disk of " + work.string() + " is full ("),
                      HasSubstr("free of 4.0 MiB); the largest of this job: /opt/ml/model/weights "
                                "2.0 MiB, /tmp/cache 1.0 MiB, log 4.0 KiB"),
                      Not(HasSubstr("everything"))));
    ::umount(scratch.path().c_str());
}

// A second goes by at every look.
class SlowClock final : public Clock {
  public:
    TimePoint now() const override { return time_from_ms(0); }
    std::chrono::steady_clock::time_point steady_now() const override {
        return std::chrono::steady_clock::time_point(std::chrono::seconds(++seconds_));
    }

  private:
    mutable int seconds_ = 0;
};

TEST(DiskUsage, who_has_very_many_files_is_not_looked_at_for_ever) {
    const TempDir scratch;
    if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
        GTEST_SKIP() << "this user cannot mount a small disk";
    }
    for (int i = 0; i < 20; ++i) {
        write_file_atomic(scratch.path() / std::to_string(i), std::string(4096, 'x'));
    }
    const std::string text = disk_full_text(scratch.path(), SlowClock());
    EXPECT_THAT(text, HasSubstr("; the largest of this job that were found in time: "));
    EXPECT_EQ(std::count(text.begin(), text.end(), ','), kLookMax.count() - 2) << text;
    ::umount(scratch.path().c_str());
}

TEST(DiskUsage, a_disk_with_room_is_not_spoken_of) {
    const TempDir scratch;
    EXPECT_EQ(disk_full_text(scratch.path(), SystemClock()), "");
    EXPECT_EQ(disk_full_text("/does/not/exist", SystemClock()), "");
}

}  // namespace
}  // namespace gruca::agent
