// What a LogStore leaves when it dies in the middle of an append: after every single system call,
// and when the disk takes a part only. A store opened over it goes on, and no byte is lost or
// doubled.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "service/telemetry/log_reader.h"

namespace gruca::service {
namespace {

class LogCrashTest : public testing::Test {
  protected:
    static TimePoint at(std::int64_t ms) { return time_from_ms(ms); }

    // Appends in a child that is killed when it has entered `calls` system calls or left them.
    // Returns whether the child came to its end before that.
    bool append_and_die(std::uint64_t offset, const std::string& bytes, int calls) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
            ::raise(SIGSTOP);
            store.append(log, offset, bytes, at(2));
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        for (int i = 0; i < calls; ++i) {
            EXPECT_EQ(::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
            ::waitpid(child, &status, 0);
            if (WIFEXITED(status)) return true;
        }
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        return false;
    }
    void expect_whole(const std::string& text) const {
        EXPECT_EQ(read_file(store.files(log).bytes), text);
        LogReader reader(store.files(log), true);
        std::uint64_t from = 0;
        while (const auto event = reader.next(from)) {
            EXPECT_GT(to_ms(event->at), 0) << "no time for the byte at " << from;
            from = event->end;
        }
        EXPECT_EQ(from, text.size());
    }

    const TempDir scratch;
    const LogName log{.job = "job", .host = "algo-1"};
    LogStore store{scratch.path() / "logs"};
};

TEST_F(LogCrashTest, an_append_killed_at_any_system_call_is_repeated_without_harm) {
    int points = 0;
    for (bool ended = false; !ended; ++points) {
        std::filesystem::remove_all(scratch.path() / "logs" / log.job);
        if (points % 2 == 1) store.append(log, 0, "first\n", at(1));  // New files, or old ones.
        const std::string before = points % 2 == 1 ? "first\n" : "";
        ended = append_and_die(before.size(), "second\nthird\n", points / 2 + 1);
        LogStore reopened(scratch.path() / "logs");
        const std::uint64_t size = reopened.size(log);
        EXPECT_TRUE(size == before.size() || size == before.size() + 13) << size;
        reopened.append(log, before.size(), "second\nthird\n", at(3));
        expect_whole(before + "second\nthird\n");
    }
    EXPECT_GT(points, 10);
}

TEST_F(LogCrashTest, a_disk_that_takes_only_a_part_loses_and_doubles_nothing) {
    const std::string bytes = "0123456789\n0123456789\n";
    for (rlim_t limit = 0; limit < bytes.size(); ++limit) {
        std::filesystem::remove_all(scratch.path() / "logs" / log.job);
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(SIGXFSZ, SIG_IGN);
            const rlimit small{.rlim_cur = limit, .rlim_max = limit};
            ::setrlimit(RLIMIT_FSIZE, &small);
            try {
                store.append(log, 0, bytes, at(2));
            } catch (const Error&) {
                ::_exit(7);
            }
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_EQ(WEXITSTATUS(status), 7) << limit;
        LogStore reopened(scratch.path() / "logs");
        reopened.append(log, 0, bytes, at(3));
        expect_whole(bytes);
    }
}

}  // namespace
}  // namespace gruca::service
