#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/temp_dir.h"

namespace gruca {
namespace {

TEST(File, an_atomic_write_replaces_content_and_sets_the_mode) {
    const TempDir dir;
    const auto path = dir.path() / "secret";
    write_file_atomic(path, "old", {.mode = 0644});
    write_file_atomic(path, "new", {.mode = 0600});
    EXPECT_EQ(read_file(path), "new");
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(File, a_failed_write_names_the_path_and_leaves_nothing) {
    const TempDir dir;
    try {
        write_file_atomic(dir.path() / "absent" / "file", "x");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_NE(error.message().find("absent/file"), std::string::npos);
    }
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(File, what_is_not_a_file_is_not_replaced) {
    const TempDir dir;
    ASSERT_EQ(::mkfifo((dir.path() / "pipe").c_str(), 0600), 0);
    EXPECT_THROW(write_file_atomic(dir.path() / "pipe", "x"), Error);
    EXPECT_TRUE(std::filesystem::is_fifo(dir.path() / "pipe"));
}

TEST(File, a_read_is_bounded) {
    const TempDir dir;
    write_file_atomic(dir.path() / "big", std::string(100, 'x'));
    EXPECT_THROW(read_file(dir.path() / "big", 99), Error);
    EXPECT_EQ(read_file(dir.path() / "big", 100).size(), 100u);
}

}  // namespace
}  // namespace gruca
