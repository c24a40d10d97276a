#include "base/durable_directories.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/sync_record.h"
#include "base/temp_dir.h"

namespace gruca {
namespace {

namespace fs = std::filesystem;

TEST(DurableDirectories, each_that_is_made_is_synced_where_it_is_named) {
    const TempDir dir;
    SyncRecord& synced = SyncRecord::instance();
    synced.clear();
    create_directories_durably(dir.path() / "a" / "b" / "c" / "");
    EXPECT_TRUE(fs::is_directory(dir.path() / "a/b/c"));
    EXPECT_EQ(synced.count(dir.path()), 1);
    EXPECT_EQ(synced.count(dir.path() / "a"), 1);
    EXPECT_EQ(synced.count(dir.path() / "a/b"), 1);
    synced.clear();
    create_directories_durably(dir.path() / "a/b/c");
    EXPECT_EQ(synced.count(dir.path() / "a/b"), 0);
}

TEST(DurableDirectories, one_that_cannot_be_made_is_named) {
    const TempDir dir;
    std::ofstream(dir.path() / "file") << "x";
    try {
        create_directories_durably(dir.path() / "file" / "below");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(error.message().find("file/below"), std::string::npos);
    }
}

}  // namespace
}  // namespace gruca
