#include "agent/node_cgroups.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

// Directories that look like a mounted hierarchy: the kernel's files, written by the test.
class NodeCgroupsTest : public testing::Test {
  protected:
    void write(const std::string& path, const std::string& content) const {
        fs::create_directories((root / path).parent_path());
        std::ofstream(root / path) << content;
    }
    const TempDir scratch;
    const fs::path root = scratch.path() / "cgroup";
    const fs::path record = scratch.path() / "cgroups";
};

TEST_F(NodeCgroupsTest, version_one_is_read) {
    for (const char* name : {"memory", "pids", "cpuacct"}) {
        write(std::string(name) + "/cgroup.procs", "");
    }
    write("memory/gruca-n/memory.max_usage_in_bytes", "1048576\n");
    write("memory/gruca-n/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    write("cpuacct/gruca-n/cpuacct.usage", "1500000000\n");
    write("pids/gruca-n/pids.max", "max");
    const NodeCgroups groups("n", record, root);
    EXPECT_EQ(groups.usage().memory_bytes_max, 1048576u);
    EXPECT_EQ(groups.usage().kills_for_memory, 2u);
    EXPECT_DOUBLE_EQ(groups.usage().processor_seconds.value(), 1.5);
    EXPECT_EQ(read_file(root / "pids/gruca-n/pids.max"), std::to_string(kProcessesMax));
    groups.add(4711);
    EXPECT_EQ(read_file(root / "memory/gruca-n/cgroup.procs"), "4711");
}

TEST_F(NodeCgroupsTest, version_two_is_read) {
    write("cgroup.controllers", "cpu memory pids\n");
    write("gruca-n/memory.peak", "4096\n");
    write("gruca-n/memory.events", "low 0\nmax 0\noom 1\noom_kill 1\n");
    write("gruca-n/cpu.stat", "usage_usec 250000\nuser_usec 1\n");
    const NodeCgroups groups("n", record, root);
    EXPECT_EQ(groups.usage().memory_bytes_max, 4096u);
    EXPECT_EQ(groups.usage().kills_for_memory, 1u);
    EXPECT_DOUBLE_EQ(groups.usage().processor_seconds.value(), 0.25);
    EXPECT_EQ(read_file(record), (root / "gruca-n").string() + "\n");
}

TEST_F(NodeCgroupsTest, without_a_hierarchy_nothing_is_counted_and_nothing_fails) {
    const NodeCgroups groups("n", record, root);
    EXPECT_TRUE(groups.groups().empty());
    EXPECT_FALSE(groups.usage().memory_bytes_max);
    EXPECT_EQ(groups.usage().kills_for_memory, 0u);
}

TEST_F(NodeCgroupsTest, real_groups_count_a_real_process_and_are_removed) {
    std::vector<fs::path> paths;
    {
        const NodeCgroups groups("test-" + scratch.path().filename().string(), record);
        if (groups.groups().empty()) GTEST_SKIP() << "this machine lets nobody make groups here";
        paths = groups.groups();
        // The shell waits for its stdin until it is in its groups.
        std::array<int, 2> ends;
        ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
        const UniqueFd in(ends[0]);
        UniqueFd out(ends[1]);
        Subprocess worker({.argv = {"sh", "-c", "read line; head -c 2000000 /dev/zero | tail"},
                           .stdin_fd = in.get()});
        groups.add(worker.pid());
        out.reset();
        worker.wait();
        if (groups.usage().memory_bytes_max) {
            EXPECT_GT(*groups.usage().memory_bytes_max, 0u);
        }
    }
    for (const fs::path& path : paths) EXPECT_FALSE(fs::exists(path)) << path;
}

}  // namespace
}  // namespace gruca::agent
