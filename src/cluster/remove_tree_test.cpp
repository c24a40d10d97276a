// The promises of cluster/remove_tree.h.

#include "cluster/remove_tree.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::cluster {
namespace {

namespace fs = std::filesystem;

// While it lives, this process has no more descriptors than that.
class OpenFilesLimit {
  public:
    explicit OpenFilesLimit(rlim_t count) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit limit = {.rlim_cur = count, .rlim_max = before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    ~OpenFilesLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_ = {};
};

class RemoveTree : public testing::Test {
  protected:
    // No path could name what lies so deep.
    void nest(int depth) const {
        UniqueFd here = open_file(tree, O_RDONLY | O_DIRECTORY);
        for (int i = 0; i < depth; ++i) {
            ASSERT_EQ(::mkdirat(here.get(), "d", 0700), 0);
            ASSERT_EQ(::mkdirat(here.get(), "beside", 0700), 0);
            UniqueFd file(::openat(here.get(), "f", O_WRONLY | O_CREAT, 0600));
            here.reset(::openat(here.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        }
    }
    void SetUp() override { fs::create_directories(tree); }

    const TempDir scratch;
    const fs::path tree = scratch.path() / "tree";
};

TEST_F(RemoveTree, nests_deeper_than_descriptors_and_paths_reach) {
    nest(200);
    const OpenFilesLimit limit(32);
    remove_tree(tree);
    EXPECT_FALSE(fs::exists(tree));
}

TEST_F(RemoveTree, goes_wherever_it_lies_and_touches_nothing_else) {
    const fs::path other = scratch.path() / "other";
    fs::create_directories(other / "kept");
    fs::create_directories(tree / "a" / "b");
    fs::create_directory_symlink(other, tree / "a" / "link");
    fs::create_symlink("nowhere", tree / "dangling");
    ASSERT_EQ(::mkfifo((tree / "a" / "pipe").c_str(), 0600), 0);
    remove_tree(tree);
    EXPECT_FALSE(fs::exists(tree));
    EXPECT_TRUE(fs::exists(other / "kept"));
    EXPECT_NO_THROW(remove_tree(tree));
}

TEST_F(RemoveTree, names_like_those_it_gives_are_no_obstacle) {
    for (int i = 0; i < 4; ++i) {
        fs::create_directories(tree / std::to_string(i) / "full" / "x");
        fs::create_directories(tree / ("x" + std::to_string(i)) / std::to_string(i) / "x");
    }
    write_file_atomic(tree / "5", "a file");
    remove_tree(tree);
    EXPECT_FALSE(fs::exists(tree));
}

TEST_F(RemoveTree, directories_that_their_owner_has_locked_go_too) {
    fs::create_directories(tree / "a" / "locked" / "inner");
    fs::permissions(tree / "a" / "locked" / "inner", fs::perms::none);
    fs::permissions(tree / "a" / "locked", fs::perms::none);
    fs::permissions(tree / "a", fs::perms::owner_read);
    remove_tree(tree);
    EXPECT_FALSE(fs::exists(tree));
}

TEST_F(RemoveTree, many_siblings_with_much_in_them_go) {
    for (int i = 0; i < 60; ++i) {
        fs::create_directories(tree / std::to_string(i % 10) / std::to_string(i) / "x" / "y");
    }
    remove_tree(tree);
    EXPECT_FALSE(fs::exists(tree));
}

TEST_F(RemoveTree, stops_when_it_is_told_to_and_goes_on_when_asked_again) {
    nest(20);
    std::stop_source source;
    source.request_stop();
    EXPECT_THROW(remove_tree(tree, source.get_token()), Error);
    EXPECT_TRUE(fs::exists(tree));
    remove_tree(tree);
    EXPECT_FALSE(fs::exists(tree));
}

}  // namespace
}  // namespace gruca::cluster
