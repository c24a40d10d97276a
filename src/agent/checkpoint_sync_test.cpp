#include "agent/checkpoint_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "store/memory_store.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CheckpointSyncTest : public testing::Test {
  protected:
    void write(const std::string& path, const std::string& content) const {
        fs::create_directories((local / path).parent_path());
        write_file_atomic(local / path, content);
    }
    std::vector<std::string> keys() const {
        std::vector<std::string> result;
        store.for_each("", [&](const auto& object) { result.push_back(object.key); });
        return result;
    }
    void let_settle() {
        sync.upload_settled();
        clock.advance(kSettled + std::chrono::seconds(1));
        sync.upload_settled();
    }

    void SetUp() override { fs::create_directories(local); }

    const TempDir scratch;
    const fs::path local = scratch.path() / "checkpoints";
    store::MemoryStore store;
    ManualClock clock{SystemClock().now()};
    std::vector<std::string> complaints;
    CheckpointSync sync{
        {.s3_uri = "s3://b/run",
         .directory = local,
         .complain = [this](const std::string& line) { complaints.push_back(line); }},
        store,
        clock};
};

TEST_F(CheckpointSyncTest, a_file_goes_up_once_it_has_settled) {
    write("step-1/weights", "w");
    sync.upload_settled();
    EXPECT_THAT(keys(), IsEmpty());
    let_settle();
    EXPECT_THAT(keys(), ElementsAre("b/run/step-1/weights"));
}

TEST_F(CheckpointSyncTest, a_file_that_changes_between_two_looks_waits) {
    write("state", "one");
    sync.upload_settled();
    clock.advance(std::chrono::seconds(60));
    write("state", "two longer");
    sync.upload_settled();
    EXPECT_THAT(keys(), IsEmpty());
    sync.finish();
    EXPECT_EQ(store.get("b/run/state"), "two longer");
}

TEST_F(CheckpointSyncTest, the_prefix_ends_at_a_slash_when_it_is_brought_down) {
    store.put("b/run/a/b", std::string_view("mine"));
    store.put("b/run-2/c", std::string_view("a sibling's"));
    sync.restore({});
    EXPECT_EQ(read_file(local / "a" / "b"), "mine");
    EXPECT_FALSE(fs::exists(local / "c"));
}

TEST_F(CheckpointSyncTest, what_is_deleted_locally_is_deleted_in_the_store) {
    store.put("b/run/old", std::string_view("x"));
    sync.restore({});
    write("new", "y");
    sync.finish();
    fs::remove(local / "old");
    sync.finish();
    EXPECT_THAT(keys(), ElementsAre("b/run/new"));
}

TEST_F(CheckpointSyncTest, objects_that_never_were_here_are_never_deleted_or_replaced) {
    store.put("b/run/7/manifest", std::string_view("the trainer's own"));
    let_settle();
    sync.finish();
    EXPECT_EQ(store.get("b/run/7/manifest"), "the trainer's own");
}

TEST_F(CheckpointSyncTest, a_restored_file_is_not_sent_back_unless_it_changes) {
    store.put("b/run/a", std::string_view("x"));
    sync.restore({});
    const std::string etag = store.find("b/run/a")->etag;
    sync.finish();
    EXPECT_EQ(store.find("b/run/a")->etag, etag);
    write("a", "changed");
    sync.finish();
    EXPECT_EQ(store.get("b/run/a"), "changed");
}

TEST_F(CheckpointSyncTest, links_are_not_followed_out_of_the_directory) {
    write_file_atomic(scratch.path() / "secret", "the admin key");
    fs::create_symlink(scratch.path() / "secret", local / "innocent");
    fs::create_directory_symlink(scratch.path(), local / "directory");
    sync.finish();
    EXPECT_THAT(keys(), IsEmpty());
}

TEST_F(CheckpointSyncTest, a_failure_is_told_once_tried_again_and_thrown_at_the_end) {
    fs::remove_all(local);
    sync.upload_settled();
    EXPECT_THROW(sync.finish(), Error);
    ASSERT_THAT(complaints, SizeIs(1));
    EXPECT_THAT(complaints[0], HasSubstr("checkpoint upload failed"));
    write("a", "x");
    sync.finish();
    EXPECT_THAT(keys(), ElementsAre("b/run/a"));
}

}  // namespace
}  // namespace gruca::agent
