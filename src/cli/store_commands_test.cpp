#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fake_world.h"
#include "store/object_store.h"

namespace gruca::cli {
namespace {
namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class StoreCommands : public testing::Test {
  protected:
    void write(const std::string& name, const std::string& content) {
        fs::create_directories((files.path() / name).parent_path());
        write_file_atomic(files.path() / name, content);
    }
    std::string path(const std::string& name) const { return (files.path() / name).string(); }
    std::string object(const std::string& key) {
        return store::open_store(store::file_uri(world.data_dir() / "store"))->get(key);
    }
    void put(const std::string& key, const std::string& body) {
        store::open_store(store::file_uri(world.data_dir() / "store"))->put(key, body);
    }

    FakeWorld world;
    TempDir files;
};

TEST_F(StoreCommands, files_go_in_and_come_out) {
    const std::string large(9u << 20, 'x');  // More than a piece.
    write("a", large);
    EXPECT_EQ(world.printed({"store", "cp", path("a"), "s3://box/k"}),
              "copied 1 object, 9.0 MiB\n");
    EXPECT_EQ(object("box/k"), large);
    EXPECT_EQ(world.printed({"store", "cp", "s3://box/k", path("deep/b")}),
              "copied 1 object, 9.0 MiB\n");
    EXPECT_EQ(read_file(path("deep/b")), large);
}

TEST_F(StoreCommands, a_target_that_is_a_directory_keeps_the_name) {
    write("a.txt", "A");
    world.printed({"store", "cp", path("a.txt"), "s3://box"});
    world.printed({"store", "cp", path("a.txt"), "s3://box/in/"});
    EXPECT_EQ(object("box/a.txt") + object("box/in/a.txt"), "AA");
    fs::create_directory(files.path() / "out");
    world.printed({"store", "cp", "s3://box/in/a.txt", path("out")});
    world.printed({"store", "cp", "s3://box/in/a.txt", path("new/")});
    EXPECT_EQ(read_file(path("out/a.txt")) + read_file(path("new/a.txt")), "AA");
    world.printed({"store", "cp", "s3://box/a.txt", "s3://other/"});
    EXPECT_EQ(object("other/a.txt"), "A");
}

TEST_F(StoreCommands, trees_go_both_ways) {
    write("tree/a", "A");
    write("tree/sub/b", "B");
    EXPECT_THAT(world.printed({"store", "cp", "-r", path("tree"), "s3://box/tree"}),
                StartsWith("copied 2 objects"));
    put("box/tree-house", "not below it");
    world.printed({"store", "cp", "-r", "s3://box/tree", path("back")});
    EXPECT_EQ(read_file(path("back/a")) + read_file(path("back/sub/b")), "AB");
    EXPECT_FALSE(fs::exists(path("back/-house")));
    world.printed({"store", "cp", "--recursive", "s3://box/tree/", "s3://box/tree/copy"});
    EXPECT_EQ(object("box/tree/copy/sub/b"), "B");
}

TEST_F(StoreCommands, a_key_cannot_climb_out_of_the_target) {
    for (const char* key : {"box/t/../../evil", "box/t//x", "box/t/./y"}) {
        put(key, "evil");
        EXPECT_THAT(world.printed({"store", "cp", "-r", "s3://box/t", path("target/inner")}),
                    StartsWith("exit code 2"))
            << key;
        world.printed({"store", "rm", "-r", "s3://box/t"});
    }
    EXPECT_FALSE(fs::exists(path("evil")));
    EXPECT_FALSE(fs::exists(path("target/evil")));
}

TEST_F(StoreCommands, ls_shows_buckets_folders_or_everything) {
    put("box/tree/a", "A");
    put("box/tree/sub/b", "BB");
    put("box-2/x", "");
    put("box0/x", "");
    EXPECT_EQ(world.printed({"store", "ls"}), "s3://box-2/\ns3://box/\ns3://box0/\n");
    const std::string shallow = world.printed({"store", "ls", "s3://box/tree/"});
    EXPECT_THAT(shallow, AllOf(HasSubstr("1 B  s3://box/tree/a\n"),
                               HasSubstr("  s3://box/tree/sub/\n"), Not(HasSubstr("sub/b"))));
    EXPECT_THAT(world.printed({"store", "ls", "-r", "s3://box"}),
                HasSubstr("2 B  s3://box/tree/sub/b\n"));
    const Json json = Json::parse(world.printed({"store", "ls", "--json", "s3://box/tree/"}));
    EXPECT_EQ(json.at("Contents").as_array().at(0).get_string("Key"), "tree/a");
    EXPECT_EQ(json.at("CommonPrefixes").as_array().at(0).get_string("Prefix"), "tree/sub/");
}

TEST_F(StoreCommands, rm_removes_what_is_named_and_nothing_else) {
    put("box/a", "");
    put("box/ab", "");
    put("box/a/b", "");
    EXPECT_EQ(world.printed({"store", "rm", "s3://box/a"}), "removed s3://box/a\n");
    EXPECT_EQ(world.printed({"store", "rm", "-r", "s3://box/a"}), "removed s3://box/a/b\n");
    EXPECT_EQ(object("box/ab"), "");
    EXPECT_THAT(world.printed({"store", "rm", "s3://box/a"}), StartsWith("exit code 3"));
    EXPECT_THAT(world.printed({"store", "rm", "s3://box"}), HasSubstr("--recursive"));
}

TEST_F(StoreCommands, what_is_not_there_is_said_and_leaves_nothing_behind) {
    put("box/x", "");
    EXPECT_THAT(world.printed({"store", "cp", "s3://box/gone", path("gone")}),
                AllOf(StartsWith("exit code 3"), HasSubstr("s3://box/gone")));
    EXPECT_THAT(world.printed({"store", "cp", path("none"), "s3://box/k"}),
                StartsWith("exit code 3"));
    EXPECT_THAT(world.printed({"store", "cp", "-r", path("none"), "s3://box/k"}),
                StartsWith("exit code 3"));
    EXPECT_THAT(world.printed({"store", "cp", "-r", "s3://box/none", path("none")}),
                StartsWith("exit code 3"));
    EXPECT_THAT(world.printed({"store", "cp", path("a"), path("b")}), StartsWith("exit code 2"));
    EXPECT_TRUE(fs::is_empty(files.path()));
}

}  // namespace
}  // namespace gruca::cli
