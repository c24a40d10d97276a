#include "store/local_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace gruca::store {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> keys(const ObjectStore& store) {
    std::vector<std::string> found;
    store.for_each("", [&](const ObjectInfo& info) { found.push_back(info.key); });
    return found;
}

TEST(LocalStore, the_directory_of_a_prefix_is_a_store_of_its_own) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    store.put("bucket/run/part", "x");
    store.put("bucket/run-2", "y");
    LocalStore below(store.directory_for("bucket/run/"));
    EXPECT_THAT(keys(below), ElementsAre("part"));
    below.put("deep/new", "z");
    EXPECT_EQ(store.get("bucket/run/deep/new"), "z");
    store.remove("bucket/run/part");
    EXPECT_THAT(keys(below), ElementsAre("deep/new"));
}

TEST(LocalStore, the_directory_of_a_prefix_stays_when_its_last_object_goes) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    const fs::path directory = store.directory_for("bucket/run/");
    EXPECT_EQ(store.directory_for("bucket/run/"), directory);
    store.put("bucket/run/a/b", "x");
    store.remove("bucket/run/a/b");
    EXPECT_TRUE(fs::is_directory(directory));
    EXPECT_FALSE(fs::exists(directory / "a.d"));
    EXPECT_THAT(keys(store), IsEmpty());
    EXPECT_EQ(store.directory_for(""), scratch.path());
    EXPECT_THROW(store.directory_for("bucket/ru"), Error);
}

TEST(LocalStore, a_removed_directory_takes_kept_ones_below_it_along) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    store.directory_for("bucket/");
    store.directory_for("bucket/ckpt/deep/" + std::string(300, 'x') + "/");
    EXPECT_TRUE(store.remove_directory("bucket/"));
    EXPECT_FALSE(store.has_directory("bucket/"));
    EXPECT_TRUE(store.remove_directory("bucket/"));
    EXPECT_TRUE(store.remove_directory("never/made/"));
}

TEST(LocalStore, a_directory_that_is_not_removed_keeps_what_it_has) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    const fs::path bucket = store.directory_for("bucket/");
    const fs::path kept = store.directory_for("bucket/ckpt/");
    store.put("bucket/z/object", "x");
    EXPECT_FALSE(store.remove_directory("bucket/"));
    store.remove("bucket/z/object");
    std::ofstream(bucket / ".tmp-0123456789abcdef") << "half";  // Of a put that is under way.
    EXPECT_FALSE(store.remove_directory("bucket/"));
    EXPECT_TRUE(fs::exists(bucket / ".keep") && fs::exists(kept / ".keep"));
    fs::remove(bucket / ".tmp-0123456789abcdef");
    fs::create_directory(bucket / "foreign");
    EXPECT_FALSE(store.remove_directory("bucket/"));
    EXPECT_TRUE(fs::exists(bucket / ".keep") && fs::exists(kept / ".keep"));
}

TEST(LocalStore, a_put_that_dies_leaves_nothing_where_files_may_have_no_name) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    const fs::path directory = store.directory_for("run/");
    const bool may_have_none =
        UniqueFd(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)).is_open();
    const auto writer = store.begin_put("run/a", {});
    int temporaries = 0;  // Beside the target, as another file system could not rename them.
    for (const auto& entry : fs::directory_iterator(directory)) {
        temporaries += entry.path().filename().string().starts_with(".tmp-");
    }
    EXPECT_EQ(temporaries, may_have_none ? 0 : 1);
}

TEST(LocalStore, a_put_whose_directory_is_removed_as_empty_makes_it_again) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    const auto writer = store.begin_put("a/b/c", {});
    writer->write(bytes_of("x"));
    fs::remove(scratch.path() / "a.d" / "b.d");
    fs::remove(scratch.path() / "a.d");
    if (fs::exists(scratch.path() / "a.d")) GTEST_SKIP() << "the file has a name here";
    EXPECT_EQ(writer->commit(), PutOutcome::written);
    EXPECT_EQ(store.get("a/b/c"), "x");
}

TEST(LocalStore, a_removed_tree_leaves_no_empty_directory) {
    const std::string long_key(1000, 'x');
    const TempDir scratch;
    LocalStore store(scratch.path());
    for (const std::string& key : {std::string("a/b/c/d"), std::string("a/e"), long_key}) {
        store.put(key, "x");
        store.remove(key);
    }
    { const auto abandoned = store.begin_put("f/g", {}); }
    for (const auto& entry : fs::directory_iterator(scratch.path())) {
        EXPECT_EQ(entry.path().filename(), ".swept");
    }
}

TEST(LocalStore, only_regular_files_with_a_right_name_are_objects) {
    const TempDir scratch;
    const TempDir outside;
    LocalStore store(scratch.path());
    store.put("dir/real", "x");
    const fs::path dir = scratch.path() / "dir.d";
    LocalStore(outside.path()).put("secret", "s");
    fs::create_symlink(outside.path() / "secret", dir / "link");
    fs::create_directory_symlink(outside.path(), dir / "tree.d");
    ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
    fs::create_directory(dir / "plain");
    EXPECT_THAT(keys(store), ElementsAre("dir/real"));
    for (const char* key : {"dir/link", "dir/tree/secret", "dir/pipe", "dir/plain"}) {
        EXPECT_FALSE(store.find(key)) << key;
        EXPECT_THROW(store.get(key), Error) << key;
        EXPECT_THROW(store.read(key, 0, {}), Error) << key;
    }
    EXPECT_THROW(store.put("dir/tree/new", "x"), Error);
    EXPECT_THAT(keys(LocalStore(outside.path())), ElementsAre("secret"));
    // A put may replace the link itself; what it pointed to stays.
    store.put("dir/link", "mine");
    EXPECT_EQ(LocalStore(outside.path()).get("secret"), "s");
}

TEST(LocalStore, what_dead_writers_left_is_swept_after_a_day_and_at_most_once_a_day) {
    const TempDir scratch;
    const TimePoint start = SystemClock().now();
    LocalStore(scratch.path(), start).put("a/b", "x");
    const fs::path stale = scratch.path() / "a.d" / ".tmp-00000000000000aa";
    const auto leave_behind = [&] { std::ofstream(stale) << "half"; };
    leave_behind();
    LocalStore(scratch.path(), start + hours(23));
    EXPECT_TRUE(fs::exists(stale));  // The tree was searched an hour short of a day ago.
    LocalStore(scratch.path(), start + hours(25));
    EXPECT_FALSE(fs::exists(stale));
    leave_behind();
    LocalStore(scratch.path(), start + hours(48));
    EXPECT_TRUE(fs::exists(stale));
    LocalStore(scratch.path(), start + hours(50));
    EXPECT_FALSE(fs::exists(stale));
    EXPECT_THAT(keys(LocalStore(scratch.path())), ElementsAre("a/b"));
}

TEST(LocalStore, a_young_temporary_file_survives_the_sweep) {
    const TempDir scratch;
    const TimePoint start = SystemClock().now();
    LocalStore store(scratch.path(), start - hours(48));
    const auto writer = store.begin_put("a", {});
    LocalStore(scratch.path(), start);
    EXPECT_EQ(writer->commit(), PutOutcome::written);
}

TEST(LocalStore, a_root_that_cannot_be_opened_is_named) {
    const TempDir scratch;
    const fs::path file = scratch.path() / "file";
    std::ofstream(file) << "x";
    try {
        LocalStore store(file);
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.message(), testing::HasSubstr(file.string()));
    }
}

TEST(LocalStore, a_page_from_a_large_directory_holds_few_names_and_is_exact) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    const fs::path directory = store.directory_for("d/");
    for (int i = 0; i < 1100; ++i) std::ofstream(directory / std::to_string(100'000 + i)) << i;
    fs::create_directory(directory / "100000.d");  // An empty one between the objects.
    int count = 0;
    store.for_each("d/", [&](const ObjectInfo& info) {
        EXPECT_EQ(info.key, "d/" + std::to_string(100'000 + count++));
    });
    EXPECT_EQ(count, 1100);
    EXPECT_EQ(store.list({.prefix = "d/", .after = "d/101098"}).objects.size(), 1u);
}

}  // namespace
}  // namespace gruca::store
