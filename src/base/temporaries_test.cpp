#include "base/temporaries.h"

#include <gtest/gtest.h>

#include "base/temp_dir.h"

namespace gruca {
namespace {

namespace fs = std::filesystem;

TEST(Temporaries, what_a_dead_process_left_is_swept_and_what_others_have_is_not) {
    const TempDir dir;
    const fs::path path = dir.path() / "credentials";
    const std::string left = make_temporary(path).path;  // Closed again, as at a death.
    const Temporary living = make_temporary(path);
    const Temporary of_another = make_temporary(dir.path() / "config");
    for (const char* name : {"credentials", "credentials.backup", "credentials~",
                             "credentials.gruca-", "credentials.gruca-Ab3x9Zz"}) {
        write_file_atomic(dir.path() / name, "the user's");
    }
    sweep_temporaries(path);
    EXPECT_FALSE(fs::exists(left));
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 7);
    EXPECT_TRUE(fs::exists(living.path));
    EXPECT_TRUE(fs::exists(of_another.path));
}

TEST(Temporaries, a_directory_that_is_not_there_holds_none) {
    EXPECT_NO_THROW(sweep_temporaries("/no/such/directory/file"));
}

}  // namespace
}  // namespace gruca
