#include "store/local_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gruca::store {
namespace {

using testing::ElementsAre;

std::string path_of(std::string_view key) {
    const LocalPath path = local_path_of(key);
    std::string text;
    for (const std::string& name : path.directories) text += name + "|";
    return text + path.file;
}

TEST(LocalNames, ordinary_keys_stay_readable) {
    EXPECT_EQ(path_of("bucket/run 7/part-0.bin"), "bucket.d|run 7.d|part-0.bin");
    EXPECT_EQ(path_of("\u010d"), "\u010d");
}

TEST(LocalNames, every_awkward_segment_has_a_spelling_of_its_own) {
    EXPECT_EQ(path_of("a/"), "a.d|%");
    EXPECT_EQ(path_of("a//b"), "a.d|%.d|b");
    EXPECT_EQ(path_of("../.a"), "%2E..d|%2Ea");
    EXPECT_EQ(path_of("x.d"), "x%2Ed");
    EXPECT_EQ(path_of("x.d/y"), "x.d.d|y");
    EXPECT_EQ(path_of("x.more"), "x%2Emore");
    EXPECT_EQ(path_of("100%\n\x7f"), "100%25%0A%7F");
}

TEST(LocalNames, a_long_segment_goes_on_in_a_directory_and_every_name_fits) {
    EXPECT_EQ(path_of(std::string(240, 'x')), std::string(240, 'x') + ".more|%");
    EXPECT_EQ(path_of(std::string(241, 'x') + "/y"), std::string(240, 'x') + ".more|x.d|y");
    for (const char* unit : {"x", "%", ".d", "\U0001F600", "/"}) {
        std::string key;
        while (key.size() + std::string_view(unit).size() <= 1024) key += unit;
        const LocalPath path = local_path_of(key);
        for (const std::string& name : path.directories) EXPECT_LE(name.size(), 255u);
        EXPECT_LE(path.file.size(), 255u);
    }
}

TEST(LocalNames, a_name_is_read_back_only_in_its_one_spelling) {
    EXPECT_EQ(read_local_name("a").text, "a");
    EXPECT_EQ(read_local_name("a.d").text, "a/");
    EXPECT_EQ(read_local_name("%").kind, LocalName::Kind::object);
    EXPECT_EQ(read_local_name("%.d").text, "/");
    for (const std::string& name :
         {std::string(".keep"), std::string(".tmp-1"), std::string("%41"), std::string("%2f"),
          std::string("%2F"), std::string("a%"), std::string("%0a"), std::string("\xff"),
          std::string("a.more"), std::string("a\n"), std::string(250, 'x')}) {
        EXPECT_EQ(read_local_name(name).kind, LocalName::Kind::not_ours) << name;
    }
}

TEST(LocalNames, the_directories_of_a_prefix_are_those_of_the_keys_below_it) {
    EXPECT_THAT(local_directories_of(""), ElementsAre());
    EXPECT_THAT(local_directories_of("a/b/"), ElementsAre("a.d", "b.d"));
    EXPECT_EQ(local_directories_of("a//b/"), local_path_of("a//b/c").directories);
}

}  // namespace
}  // namespace gruca::store
