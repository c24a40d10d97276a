#include "base/replace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca {
namespace {

TEST(ReplaceFile, the_content_and_the_mode_are_the_new_ones_and_nothing_else_is_left) {
    const TempDir scratch;
    const auto path = scratch.path() / "pid";
    replace_file(path, "old");
    replace_file(path, "new", 0600);
    EXPECT_EQ(read_file(path), "new");
    struct stat facts = {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777u, 0600u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST(ReplaceFile, a_reader_that_has_it_open_keeps_the_old_content) {
    const TempDir scratch;
    const auto path = scratch.path() / "pid";
    replace_file(path, "old");
    const UniqueFd reader = open_file(path, O_RDONLY);
    replace_file(path, "newer");
    std::string text(8, '\0');
    text.resize(read_full(reader.get(), std::as_writable_bytes(std::span(text))));
    EXPECT_EQ(text, "old");
}

TEST(ReplaceFile, what_is_no_file_stays) {
    const TempDir scratch;
    EXPECT_THROW(replace_file("/dev/null", "x"), Error);
    EXPECT_THROW(replace_file(scratch.path(), "x"), Error);
}

}  // namespace
}  // namespace gruca
