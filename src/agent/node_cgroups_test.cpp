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
    CgroupOptions options(const spec::NodeLimits& limits = {}) const {
        return {.name = "n",
                .record = scratch.path() / "cgroups",
                .limits = limits,
                .machine = {.memory_bytes = 8ull << 30, .processes_max = 40000, .cores = 4},
                .root = root};
    }
    std::string content(const std::string& path) const { return read_file(root / path); }

    const TempDir scratch;
    const fs::path root = scratch.path() / "cgroup";
};

TEST_F(NodeCgroupsTest, version_one_is_read) {
    for (const char* name : {"memory", "pids", "cpuacct"}) {
        write(std::string(name) + "/cgroup.procs", "");
    }
    write("memory/gruca/n/memory.max_usage_in_bytes", "1048576\n");
    write("memory/gruca/n/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    write("cpuacct/gruca/n/cpuacct.usage", "1500000000\n");
    const NodeCgroups groups(options());
    EXPECT_EQ(groups.usage().memory_bytes_max, 1048576u);
    EXPECT_EQ(groups.usage().kills_for_memory, 2u);
    EXPECT_DOUBLE_EQ(groups.usage().processor_seconds.value(), 1.5);
    groups.add(4711);
    EXPECT_EQ(content("memory/gruca/n/cgroup.procs"), "4711");
    EXPECT_FALSE(groups.kill());
}

TEST_F(NodeCgroupsTest, version_two_is_read_and_its_controllers_are_passed_on) {
    write("cgroup.controllers", "cpu memory pids\n");
    write("cgroup.subtree_control", "");
    write("gruca/cgroup.subtree_control", "");
    write("gruca/n/memory.peak", "4096\n");
    write("gruca/n/memory.events", "low 0\nmax 0\noom 1\noom_kill 1\n");
    write("gruca/n/cpu.stat", "usage_usec 250000\nuser_usec 1\n");
    write("gruca/n/cgroup.kill", "");
    const NodeCgroups groups(options());
    EXPECT_EQ(groups.usage().memory_bytes_max, 4096u);
    EXPECT_EQ(groups.usage().kills_for_memory, 1u);
    EXPECT_DOUBLE_EQ(groups.usage().processor_seconds.value(), 0.25);
    EXPECT_EQ(read_file(options().record), (root / "gruca/n").string() + "\n");
    EXPECT_FALSE(content("cgroup.subtree_control").empty());
    EXPECT_FALSE(content("gruca/cgroup.subtree_control").empty());
    EXPECT_TRUE(groups.kill());
    EXPECT_EQ(content("gruca/n/cgroup.kill"), "1");
}

TEST_F(NodeCgroupsTest, without_a_hierarchy_nothing_is_counted_and_nothing_fails) {
    const NodeCgroups groups(options());
    EXPECT_TRUE(groups.groups().empty());
    EXPECT_FALSE(groups.usage().memory_bytes_max);
    EXPECT_EQ(groups.usage().kills_for_memory, 0u);
    EXPECT_FALSE(groups.kill());
}

TEST_F(NodeCgroupsTest, no_group_is_made_before_its_record_is_written) {
    write("cgroup.controllers", "cpu memory pids\n");
    CgroupOptions unwritable = options();
    unwritable.record = scratch.path() / "no such directory" / "cgroups";
    EXPECT_THROW(NodeCgroups{unwritable}, Error);
    EXPECT_FALSE(fs::exists(root / "gruca"));
}

TEST_F(NodeCgroupsTest, limits_are_set_in_the_words_of_either_version) {
    for (const char* name : {"memory", "pids", "cpu"}) {
        write(std::string(name) + "/cgroup.procs", "");
    }
    for (const char* group : {"gruca", "gruca/n"}) {
        write(std::string("memory/") + group + "/memory.limit_in_bytes", "");
        write(std::string("pids/") + group + "/pids.max", "");
    }
    write("cpu/gruca/cpu.shares", "");
    const spec::NodeLimits limits{
        .memory_bytes = 64u << 20, .memory_reserve_bytes = 1u << 30, .processes = 500};
    const NodeCgroups groups(options(limits));
    EXPECT_EQ(content("memory/gruca/memory.limit_in_bytes"), std::to_string(7ull << 30));
    EXPECT_EQ(content("memory/gruca/n/memory.limit_in_bytes"), std::to_string(64u << 20));
    EXPECT_EQ(content("pids/gruca/pids.max"), "20000");
    EXPECT_EQ(content("pids/gruca/n/pids.max"), "500");
    EXPECT_EQ(content("cpu/gruca/cpu.shares"), "4096");
    EXPECT_EQ(groups.usage().memory_limit_bytes, 64u << 20);
    EXPECT_FALSE(groups.usage().limit_is_shared);

    fs::remove_all(root);
    write("cgroup.controllers", "memory pids\n");
    for (const char* group : {"gruca", "gruca/n"}) {
        write(std::string(group) + "/memory.max", "");
        write(std::string(group) + "/pids.max", "");
    }
    const NodeCgroups second(options({.memory_reserve_bytes = 1u << 30}));
    EXPECT_EQ(content("gruca/memory.max"), std::to_string(7ull << 30));
    EXPECT_EQ(content("gruca/n/memory.max"), "");
    EXPECT_TRUE(second.usage().limit_is_shared);
    EXPECT_EQ(second.usage().memory_limit_bytes, 7ull << 30);
}

TEST_F(NodeCgroupsTest, whatever_is_asked_for_the_machine_keeps_half) {
    const MachineSize small{.memory_bytes = 1u << 30, .processes_max = 32768, .cores = 1};
    EXPECT_EQ(processes_for_all(small), 16384);
    EXPECT_EQ(processes_for_one(small, {.processes = 1'000'000}), 8192);
    EXPECT_EQ(processes_for_one(small, {.processes = 100}), 100);
    EXPECT_EQ(memory_for_all(small, {.memory_reserve_bytes = 1u << 30}), 1u << 29);
    EXPECT_EQ(memory_for_all(small, {.memory_reserve_bytes = 0}), std::nullopt);
}

TEST_F(NodeCgroupsTest, real_groups_count_a_real_process_and_are_removed) {
    std::vector<fs::path> paths;
    {
        const NodeCgroups groups({.name = "test-" + scratch.path().filename().string(),
                                  .record = scratch.path() / "cgroups"});
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
