#include "agent/probe.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "base/temp_dir.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

TEST(Probe, groups_of_probes_that_were_killed_are_removed_and_no_others) {
    const pid_t dead = ::fork();
    if (dead == 0) ::_exit(0);
    ::waitpid(dead, nullptr, 0);
    const TempDir groups;
    const fs::path stale = groups.path() / ("probe-" + std::to_string(dead));
    const fs::path alive = groups.path() / ("probe-" + std::to_string(::getpid()));
    for (const fs::path& group : {stale, alive, groups.path() / "job-algo-1-1234"}) {
        fs::create_directory(group);
    }
    remove_stale_probes(groups.path());
    EXPECT_FALSE(fs::exists(stale));
    EXPECT_TRUE(fs::exists(alive));
    EXPECT_TRUE(fs::exists(groups.path() / "job-algo-1-1234"));
    EXPECT_NO_THROW(remove_stale_probes("/does/not/exist"));
}

}  // namespace
}  // namespace gruca::agent
