#include "agent/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/beneath.h"
#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "store/memory_store.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Outputs : public testing::Test {
  protected:
    void write(const std::string& path, const std::string& content) const {
        fs::create_directories((tree / path).parent_path());
        write_file_atomic(tree / path, content);
    }
    UniqueFd root() const { return open_file(tree, O_RDONLY | O_DIRECTORY); }
    void archive(const std::string& key, Compression compression = Compression::gzip) {
        const auto sink = make_archive(store, key, compression);
        add_tree(root().get(), *sink, {});
        sink->finish();
    }
    // What tar, a program that is not ours, makes of the archive.
    std::string listing(const std::string& key, const std::string& options = "-tv") const {
        write_file_atomic(scratch.path() / "archive", store.get(key));
        return run({.argv = {"tar", options + "f", (scratch.path() / "archive").string()}}).output;
    }
    std::vector<std::string> keys() const {
        std::vector<std::string> result;
        store.for_each("", [&](const auto& object) { result.push_back(object.key); });
        return result;
    }

    const TempDir scratch;
    const fs::path tree = scratch.path() / "tree";
    store::MemoryStore store;
};

TEST_F(Outputs, tar_reads_back_every_file_as_it_was) {
    write("weights.bin", std::string(700'000, 'w'));
    write("deep/er/config.json", "{}");
    write("mit Umlaut ä", "x");
    fs::create_directories(tree / "empty");
    fs::permissions(tree / "weights.bin", fs::perms::owner_all | fs::perms::set_uid);
    archive("b/model.tar.gz");
    fs::create_directories(scratch.path() / "out");
    write_file_atomic(scratch.path() / "archive", store.get("b/model.tar.gz"));
    EXPECT_TRUE(run({.argv = {"tar", "-xzf", (scratch.path() / "archive").string(), "-C",
                              (scratch.path() / "out").string()}})
                    .status.ok());
    EXPECT_EQ(
        run({.argv = {"diff", "-r", tree.string(), (scratch.path() / "out").string()}}).output, "");
    EXPECT_THAT(listing("b/model.tar.gz"), HasSubstr("-rwx------"));
}

TEST_F(Outputs, a_link_is_archived_as_a_link_and_what_it_points_at_stays_out) {
    write_file_atomic(scratch.path() / "secret", "the admin key");
    fs::create_directories(tree);
    fs::create_symlink(scratch.path() / "secret", tree / "file");
    fs::create_directory_symlink(scratch.path(), tree / "directory");
    ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
    archive("b/model.tar", Compression::none);
    EXPECT_THAT(listing("b/model.tar"), HasSubstr("file -> " + scratch.path().string()));
    EXPECT_THAT(listing("b/model.tar"), Not(HasSubstr("pipe")));
    EXPECT_THAT(store.get("b/model.tar"), Not(HasSubstr("admin")));
}

TEST_F(Outputs, the_same_tree_gives_the_same_bytes) {
    write("a", "1");
    archive("b/first");
    archive("b/second");
    EXPECT_EQ(store.get("b/first"), store.get("b/second"));
}

TEST_F(Outputs, trees_of_several_nodes_merge_and_the_first_host_wins) {
    write("shared", "of algo-2");
    write("two/only", "2");
    archive("parts/2.tar", Compression::none);
    fs::remove_all(tree);
    fs::create_directories(tree);
    archive("parts/3.tar", Compression::none);
    write("shared", "of algo-1");
    write("two/mine", "1");
    FirstWins merged(make_archive(store, "b/model.tar", Compression::none));
    add_tree(root().get(), merged, {});
    add_archive(store, "parts/2.tar", merged, {});
    add_archive(store, "parts/3.tar", merged, {});
    merged.finish();
    EXPECT_EQ(listing("b/model.tar", "-t"), "shared\ntwo/\ntwo/mine\ntwo/only\n");
    EXPECT_EQ(listing("b/model.tar", "-xO"), "of algo-112");
}

TEST_F(Outputs, a_part_that_this_program_did_not_write_is_refused) {
    const auto sink = std::make_shared<FirstWins>(make_archive(store, "b/out.tar", {}));
    const auto refused = [&] {
        const auto error = run_guarded([&] { add_archive(store, "b/part.tar", *sink, {}); });
        return error && error->code() == ErrorCode::data_loss;
    };
    for (const char* path : {"../x", "/etc/x", "a/../../x", "a//x", ".", "a/./x"}) {
        const auto part = make_archive(store, "b/part.tar", Compression::none);
        part->add({.path = path, .kind = OutputEntry::Kind::link, .target = "/etc/shadow"}, {});
        part->finish();
        EXPECT_TRUE(refused()) << path;
    }
    write("first", "x");
    fs::create_hard_link(tree / "first", tree / "second");
    ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
    for (const std::vector<std::string>& names :
         {std::vector<std::string>{"first", "second"}, std::vector<std::string>{"pipe"}}) {
        const std::string made = (scratch.path() / "made").string();
        std::vector<std::string> argv = {"tar", "-cf", made, "-C", tree.string()};
        argv.insert(argv.end(), names.begin(), names.end());
        ASSERT_TRUE(run({.argv = argv}).status.ok());
        store.put("b/part.tar", read_file(made));
        EXPECT_TRUE(refused()) << names.front();
    }
}

TEST_F(Outputs, pipes_stay_out_and_odd_names_and_hard_links_are_files_like_others) {
    write("-rf", "x");
    write("two\nlines", "x");
    fs::create_hard_link(tree / "-rf", tree / "same");
    fs::permissions(tree / "-rf", fs::perms::owner_all | fs::perms::set_uid | fs::perms::set_gid);
    ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
    archive("b/model.tar.gz");
    EXPECT_EQ(listing("b/model.tar.gz", "-t"), "-rf\nsame\ntwo\\nlines\n");
    EXPECT_THAT(listing("b/model.tar.gz"), AllOf(HasSubstr("-rwx------"), Not(HasSubstr("link"))));
}

TEST_F(Outputs, without_compression_every_file_is_an_object) {
    write("a", "1");
    write("deep/b", "2");
    const auto sink = make_plain_objects(store, "b/out/model/");
    add_tree(root().get(), *sink, {});
    sink->finish();
    EXPECT_THAT(keys(), ElementsAre("b/out/model/a", "b/out/model/deep/b"));
    EXPECT_EQ(store.get("b/out/model/deep/b"), "2");
}

TEST_F(Outputs, a_stopped_or_failed_upload_leaves_no_archive) {
    write("a", "1");
    std::stop_source source;
    source.request_stop();
    const auto sink = make_archive(store, "b/model.tar", Compression::none);
    EXPECT_THROW(add_tree(root().get(), *sink, source.get_token()), Error);
    EXPECT_THAT(keys(), ElementsAre());
}

TEST_F(Outputs, a_very_deep_tree_is_refused_and_not_a_crash) {
    fs::path deep = tree;
    for (int i = 0; i < kTreeDepthMax + 5; ++i) deep /= "d";
    fs::create_directories(deep);
    EXPECT_THROW(archive("b/model.tar"), Error);
}

TEST_F(Outputs, that_there_is_something_is_seen_without_looking_at_all_of_it) {
    fs::create_directories(tree);
    ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
    EXPECT_TRUE(is_empty_beneath(root().get()));
    fs::path deep = tree;
    for (int i = 0; i < kTreeDepthMax + 5; ++i) deep /= "d";
    fs::create_directories(deep);  // Looking at all of it would be refused.
    EXPECT_FALSE(is_empty_beneath(root().get()));
    fs::remove_all(tree / "d");
    fs::create_symlink("nowhere", tree / "link");
    EXPECT_FALSE(is_empty_beneath(root().get()));
}

TEST_F(Outputs, a_file_is_found_beneath_the_root_only_and_never_through_a_link) {
    write_file_atomic(scratch.path() / "secret", "the admin key");
    write("output/failure", "why");
    fs::create_symlink(scratch.path() / "secret", tree / "link");
    fs::create_directory_symlink("output", tree / "other");
    ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
    const UniqueFd top = root();
    EXPECT_TRUE(find_file_beneath(top.get(), "output/failure"));
    for (const char* path : {"link", "../secret", "other/failure", "pipe", "output", "absent"}) {
        EXPECT_FALSE(find_file_beneath(top.get(), path)) << path;
    }
    EXPECT_TRUE(find_directory_beneath(top.get(), "output"));
    EXPECT_FALSE(find_directory_beneath(top.get(), "other"));
}

}  // namespace
}  // namespace gruca::agent
