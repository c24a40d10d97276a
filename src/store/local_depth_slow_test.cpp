#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "store/local_store.h"

namespace gruca::store {
namespace {

// 1,024 directories in each other, a longer path than the system takes at once.
TEST(LocalStoreDepth, a_key_of_nothing_but_slashes_is_an_ordinary_key) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    const std::string key(kKeyBytesMax, '/');
    store.put(key, "deep");
    EXPECT_EQ(store.get(key), "deep");
    EXPECT_EQ(store.list({.prefix = "//"}).objects.at(0).key, key);
    store.remove(key);
    EXPECT_TRUE(store.list({}).objects.empty());
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "%.d"));
}

}  // namespace
}  // namespace gruca::store
