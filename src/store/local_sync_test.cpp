// What a LocalStore has brought to the disk before it answers.
#include <gtest/gtest.h>

#include "base/sync_record.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "store/local_store.h"

namespace gruca::store {
namespace {

class LocalStoreSync : public testing::Test {
  protected:
    const TempDir scratch;
    const std::filesystem::path root = scratch.path() / "new" / "root";
    LocalStore store{root};
    SyncRecord& synced = SyncRecord::instance();
};

TEST_F(LocalStoreSync, a_new_root_is_synced_up_to_what_was_there) {
    EXPECT_EQ(synced.count(scratch.path()), 1);
    EXPECT_EQ(synced.count(scratch.path() / "new"), 1);
}

TEST_F(LocalStoreSync, what_is_flushed_is_not_synced_by_the_commit_again) {
    const auto writer = store.begin_put("a/b", {});
    writer->write(bytes_of("x"));
    synced.clear();
    writer->flush();
    EXPECT_GT(synced.total(), 0);
    synced.clear();
    writer->commit();
    // Every directory from the root down, and nothing that has no name any more.
    EXPECT_EQ(synced.total(), 2);
    EXPECT_EQ(synced.count(root), 1);
    EXPECT_EQ(synced.count(root / "a.d"), 1);
    EXPECT_EQ(store.get("a/b"), "x");
}

TEST_F(LocalStoreSync, what_comes_after_a_flush_is_synced_too) {
    const auto writer = store.begin_put("a", {});
    writer->flush();
    writer->write(bytes_of("x"));
    synced.clear();
    writer->commit();
    EXPECT_EQ(synced.total(), 2);  // The file and the root.
    EXPECT_EQ(store.get("a"), "x");
}

TEST_F(LocalStoreSync, the_removal_of_a_directory_is_synced) {
    store.directory_for("bucket/");
    synced.clear();
    EXPECT_TRUE(store.remove_directory("bucket/"));
    EXPECT_EQ(synced.count(root), 1);
}

TEST_F(LocalStoreSync, an_absent_object_may_have_been_removed_by_another_a_moment_ago) {
    store.put("a/b", "x");
    synced.clear();
    store.remove("a/c");
    EXPECT_EQ(synced.count(root / "a.d"), 1);
    synced.clear();
    store.remove("z/c");
    EXPECT_EQ(synced.count(root), 1);
}

}  // namespace
}  // namespace gruca::store
