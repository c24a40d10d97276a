// The promises of cluster/trash.h.

#include "cluster/trash.h"

#include <sys/mount.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::cluster {
namespace {

namespace fs = std::filesystem;

class TrashTest : public testing::Test {
  protected:
    fs::path tree(const std::string& name) const {
        fs::create_directories(scratch.path() / name / "deep" / "er");
        write_file_atomic(scratch.path() / name / "deep" / "file", "x");
        return scratch.path() / name;
    }
    void expect_emptied() const {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (fs::exists(directory)) {
            ASSERT_LT(std::chrono::steady_clock::now(), end) << "it is not emptied";
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    }

    const TempDir scratch;
    const fs::path directory = scratch.path() / ".removed";
};

TEST_F(TrashTest, what_it_takes_is_gone_at_once_and_deleted_later) {
    Trash trash(directory);
    trash.take(tree("a"));
    EXPECT_FALSE(fs::exists(scratch.path() / "a"));
    trash.take(tree("a"));
    trash.take(tree("b"));
    EXPECT_NO_THROW(trash.take(scratch.path() / "never-there"));
    expect_emptied();
}

TEST_F(TrashTest, what_an_earlier_one_has_left_goes_too) {
    fs::create_directories(directory);
    fs::rename(tree("a"), directory / "a.0");
    const Trash trash(directory);
    expect_emptied();
}

TEST_F(TrashTest, what_cannot_be_deleted_holds_nobody_up_and_is_tried_again) {
    Trash trash(directory);
    const fs::path busy = tree("busy");
    if (::mount("none", (busy / "deep").c_str(), "tmpfs", 0, nullptr) != 0) {
        GTEST_SKIP() << "no right to mount";
    }
    trash.take(busy);
    EXPECT_FALSE(fs::exists(busy));
    EXPECT_EQ(::umount((directory / "busy.0" / "deep").c_str()), 0);
    trash.take(tree("next"));
    expect_emptied();
}

TEST_F(TrashTest, what_cannot_be_moved_is_deleted_where_it_is) {
    write_file_atomic(directory, "in the way");
    Trash trash(directory);
    trash.take(tree("a"));
    EXPECT_FALSE(fs::exists(scratch.path() / "a"));
}

}  // namespace
}  // namespace gruca::cluster
