#include "cluster/last_kill.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/process_id.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace gruca::cluster {
namespace {

namespace fs = std::filesystem;

// A directory that looks like /proc.
class LastKill : public testing::Test {
  protected:
    void process(int pid, const std::string& name, char state, int parent) const {
        const fs::path directory = scratch.path() / std::to_string(pid);
        fs::create_directories(directory);
        write_file_atomic(directory / "stat", std::to_string(pid) + " (" + name + ") " + state +
                                                  " " + std::to_string(parent) + " 1 1 0\n");
    }
    void file(int pid, const std::string& name, const std::string& content) const {
        write_file_atomic(scratch.path() / std::to_string(pid) / name, content);
    }
    std::string hanging(int pid) const { return describe_hanging(pid, scratch.path()); }

    const TempDir scratch;
};

TEST_F(LastKill, what_hangs_below_process_one_is_named_with_its_place_in_the_kernel) {
    process(10, "gruca-keeper", 'S', 1);
    process(11, "a) name (D 1", 'D', 10);
    process(12, "stranger", 'D', 1);
    file(11, "stack",
         "[<0>] request_wait_answer+0x1/0x2\n[<0>] fuse_read+0x1/0x2\n"
         "[<0>] vfs_read+0x1/0x2\n[<0>] ksys_read+0x1/0x2\n");
    EXPECT_EQ(hanging(10),
              "process 11 (a) name (D 1) hangs in the kernel in request_wait_answer, fuse_read, "
              "vfs_read");
    file(11, "stack", "");
    file(11, "wchan", "nfs_wait");
    EXPECT_EQ(hanging(10), "process 11 (a) name (D 1) hangs in the kernel in nfs_wait");
    file(11, "wchan", "0");
    EXPECT_EQ(hanging(10), "process 11 (a) name (D 1) hangs in the kernel");
    process(11, "done", 'Z', 10);
    EXPECT_EQ(hanging(10), "process 10 (gruca-keeper) hangs in the kernel");
    EXPECT_EQ(hanging(4711), "");
}

TEST_F(LastKill, a_process_that_ends_is_ended_and_one_that_has_ended_is_fine) {
    Subprocess sleeper({.argv = {"sleep", "1000"}});
    const UniqueFd process = open_process(process_id_of(sleeper.pid()).value());
    EXPECT_NO_THROW(end_process(process, sleeper.pid(), std::chrono::seconds(20)));
    EXPECT_EQ(sleeper.wait().signal, SIGKILL);
    EXPECT_NO_THROW(end_process(UniqueFd(), 0, std::chrono::seconds(0)));
}

TEST_F(LastKill, a_record_of_groups_touches_nothing_but_groups) {
    fs::create_directory(scratch.path() / "precious");
    const fs::path record = scratch.path() / "record";
    write_file_atomic(record,
                      (scratch.path() / "precious").string() + "\n/sys/fs/cgroup/no/such\n");
    kill_groups(record);
    remove_groups(record);
    remove_groups(scratch.path() / "no record");
    EXPECT_TRUE(fs::exists(scratch.path() / "precious"));
    EXPECT_FALSE(fs::exists(scratch.path() / "precious" / "cgroup.kill"));
}

TEST_F(LastKill, a_group_that_cannot_be_removed_is_an_error_that_names_it) {
    const fs::path gone = scratch.path() / "memory" / "gruca" / "n";
    const fs::path empty = scratch.path() / "pids" / "gruca" / "n";
    const fs::path full = scratch.path() / "cpu" / "gruca" / "n";
    fs::create_directories(empty);
    fs::create_directories(full / "more");
    const fs::path record = scratch.path() / "record";
    write_file_atomic(record, gone.string() + "\n" + empty.string() + "\n" + full.string() + "\n");
    try {
        remove_groups(record, scratch.path());
        ADD_FAILURE() << "a group stays, and nobody is told";
    } catch (const Error& error) {
        EXPECT_THAT(error.message(), testing::HasSubstr(full.string()));
    }
    EXPECT_FALSE(fs::exists(empty.parent_path()));
    fs::remove(full / "more");
    remove_groups(record, scratch.path());
    EXPECT_FALSE(fs::exists(full.parent_path()));
}

}  // namespace
}  // namespace gruca::cluster
