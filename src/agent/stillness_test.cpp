#include "agent/stillness.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "spec/node_directory.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// A directory that looks like /proc.
class StillnessTest : public testing::Test {
  protected:
    void ran(const std::string& process, const std::string& thread, int nanoseconds) const {
        const fs::path task = scratch.path() / process / "task" / thread;
        fs::create_directories(task);
        write_file_atomic(task / "schedstat", std::to_string(nanoseconds) + " 0 1\n");
    }
    Stillness stillness() const { return Stillness(begin, scratch.path()); }

    const TempDir scratch;
    const Stillness::Instant begin = Stillness::Instant(seconds(1000));
};

TEST_F(StillnessTest, what_does_not_run_hangs_after_a_while) {
    ran("7", "7", 10);
    Stillness still = stillness();
    EXPECT_FALSE(still.has_come(begin + seconds(1)));
    EXPECT_FALSE(still.has_come(begin + kStillAfter - kLookEvery));
    EXPECT_TRUE(still.has_come(begin + kStillAfter));
}

TEST_F(StillnessTest, what_runs_only_takes_its_time_whichever_thread_it_is) {
    ran("7", "7", 10);
    ran("7", "8", 10);
    Stillness still = stillness();
    for (int second = 1; second < 60; ++second) {
        ran("7", "8", 10 + second);
        EXPECT_FALSE(still.has_come(begin + seconds(second)));
    }
    EXPECT_FALSE(still.has_come(begin + seconds(63)));
    EXPECT_TRUE(still.has_come(begin + seconds(65)));
}

TEST_F(StillnessTest, a_thread_that_has_ended_is_a_sign_too) {
    ran("7", "7", 10);
    ran("7", "8", 10);
    Stillness still = stillness();
    EXPECT_FALSE(still.has_come(begin + seconds(4)));
    fs::remove_all(scratch.path() / "7" / "task" / "8");
    EXPECT_FALSE(still.has_come(begin + seconds(5)));
    EXPECT_TRUE(still.has_come(begin + seconds(10)));
}

TEST_F(StillnessTest, that_the_keeper_runs_is_no_sign) {
    ran("7", "7", 10);
    Stillness still = stillness();
    for (int second = 1; second < 5; ++second) {
        ran("1", "1", second);
        EXPECT_FALSE(still.has_come(begin + seconds(second)));
    }
    EXPECT_TRUE(still.has_come(begin + seconds(5)));
}

TEST_F(StillnessTest, in_the_end_nothing_takes_for_ever) {
    const seconds limit = spec::node_directory::kEndingWithin;
    ran("7", "7", 0);
    Stillness still = stillness();
    for (seconds at{1}; at < limit; ++at) {
        ran("7", "7", static_cast<int>(at.count()));
        EXPECT_FALSE(still.has_come(begin + at));
    }
    ran("7", "7", -1);
    EXPECT_TRUE(still.has_come(begin + limit));
}

}  // namespace
}  // namespace gruca::agent
