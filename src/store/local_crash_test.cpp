// LocalStore against what tests rarely do to it: death at every system call, a full disk, and two
// processes that want the same key.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/boundary.h"
#include "base/error.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "store/local_store.h"

namespace gruca::store {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kSkipped = 77;

std::vector<std::string> keys(const ObjectStore& store) {
    std::vector<std::string> found;
    store.for_each("", [&](const ObjectInfo& info) { found.push_back(info.key); });
    return found;
}

// Runs `body` in a child that ends at once when it returns, and returns what wait says of it.
int status_of_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        int code = 1;
        run_guarded([&] { code = body(); });
        ::_exit(code);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

// Runs `body` in a child and kills it at its `stop`-th entry to or return from the kernel.
// False when it came to its end before.
bool killed_at(int stop, const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::raise(SIGSTOP);
        run_guarded(body);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    for (int i = 0; i < stop && WIFSTOPPED(status); ++i) {
        ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
        ::waitpid(child, &status, 0);
    }
    if (!WIFSTOPPED(status)) return false;
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return true;
}

// Each kill lands in a fresh store that holds "a/old" and "m"; returns how many there were.
int for_each_kill_point(const std::function<void(LocalStore&)>& body,
                        const std::function<void(LocalStore&)>& check) {
    for (int stop = 1;; ++stop) {
        const TempDir scratch;
        LocalStore store(scratch.path());
        store.put("a/old", "old");
        store.put("m", "m");
        const bool was_killed = killed_at(stop, [&] { body(store); });
        LocalStore reopened(scratch.path());
        check(reopened);
        // Whatever was left behind, the store goes on working.
        reopened.put("a/old", "after");
        EXPECT_EQ(reopened.get("a/old"), "after");
        if (!was_killed || testing::Test::HasFailure()) return stop - 1;
    }
}

TEST(LocalStoreCrash, a_replaced_object_is_whole_wherever_the_writer_is_killed) {
    bool was_old = false, was_new = false;
    const int points = for_each_kill_point([](LocalStore& store) { store.put("a/old", "new"); },
                                           [&](LocalStore& store) {
                                               const std::string body = store.get("a/old");
                                               EXPECT_THAT(body, AnyOf("old", "new"));
                                               EXPECT_THAT(keys(store), ElementsAre("a/old", "m"));
                                               was_old |= body == "old";
                                               was_new |= body == "new";
                                           });
    EXPECT_GT(points, 20);
    EXPECT_TRUE(was_old && was_new);
}

TEST(LocalStoreCrash, a_new_object_is_there_or_not_wherever_the_writer_is_killed) {
    for (const bool only_if_absent : {false, true}) {
        for_each_kill_point(
            [&](LocalStore& store) {
                store.put("b/c/new", "new", {.only_if_absent = only_if_absent});
            },
            [](LocalStore& store) {
                if (store.find("b/c/new")) {
                    EXPECT_EQ(store.get("b/c/new"), "new");
                } else {
                    EXPECT_THAT(keys(store), ElementsAre("a/old", "m"));
                }
            });
    }
}

TEST(LocalStoreCrash, a_removal_happens_or_not_wherever_it_is_killed) {
    for_each_kill_point([](LocalStore& store) { store.remove("a/old"); },
                        [](LocalStore& store) {
                            EXPECT_THAT(keys(store),
                                        AnyOf(ElementsAre("a/old", "m"), ElementsAre("m")));
                        });
}

TEST(LocalStoreCrash, a_full_disk_fails_the_put_and_leaves_the_old_object_and_no_rest) {
    const TempDir scratch;
    const int status = status_of_child([&] {
        constexpr const char* kSize = "size=512k";
        if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
            return kSkipped;
        }
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, kSize) != 0) return kSkipped;
        LocalStore store(scratch.path());
        store.put("dir/a", "old");
        const auto failure = run_guarded([&] { store.put("dir/a", std::string(1u << 20, 'x')); });
        if (!failure || failure->code() != ErrorCode::resource_exhausted) return 2;
        if (failure->message().find("dir/a") == std::string::npos) return 3;
        if (store.get("dir/a") != "old") return 4;
        if (std::distance(fs::directory_iterator(scratch.path() / "dir.d"), {}) != 1) return 5;
        store.put("dir/b", std::string(300u << 10, 'x'));  // The room of the failed one is back.
        return 0;
    });
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "mounting a small disk is not permitted";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(LocalStoreCrash, of_several_processes_exactly_one_publishes_a_manifest) {
    const TempDir scratch;
    LocalStore store(scratch.path());
    constexpr int kRounds = 30, kProcesses = 4, kWon = 10, kLost = 11;
    for (int round = 0; round < kRounds; ++round) {
        const std::string key = "run/" + std::to_string(round) + "/manifest";
        int gate[2];
        ASSERT_EQ(::pipe(gate), 0);
        std::vector<pid_t> children;
        for (int process = 0; process < kProcesses; ++process) {
            children.push_back(::fork());
            if (children.back() != 0) continue;
            ::close(gate[1]);
            char c;
            if (::read(gate[0], &c, 1) < 0) ::_exit(1);  // Returns when the gate closes.
            LocalStore mine(scratch.path());
            const std::string body = std::to_string(process);
            const PutOutcome outcome = mine.put(key, body, {.only_if_absent = true});
            ::_exit(outcome == PutOutcome::written ? kWon : kLost);
        }
        ::close(gate[0]);
        ::close(gate[1]);
        std::vector<int> winners;
        for (int process = 0; process < kProcesses; ++process) {
            int status = 0;
            ::waitpid(children[static_cast<std::size_t>(process)], &status, 0);
            ASSERT_TRUE(WIFEXITED(status));
            if (WEXITSTATUS(status) == kWon) winners.push_back(process);
            ASSERT_THAT(WEXITSTATUS(status), AnyOf(kWon, kLost));
        }
        ASSERT_EQ(winners.size(), 1u);
        EXPECT_EQ(store.get(key), std::to_string(winners[0]));
    }
}

}  // namespace
}  // namespace gruca::store
