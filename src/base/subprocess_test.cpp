#include "base/subprocess.h"

#include <fcntl.h>

#include <gtest/gtest.h>
#include <signal.h>

#include "base/error.h"

namespace gruca {
namespace {

TEST(Subprocess, output_and_exit_code_come_back) {
    const RunResult result = run({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
    EXPECT_EQ(result.output, "out\nerr\n");
    EXPECT_EQ(result.status, (ExitStatus{.code = 3, .signal = 0}));
}

TEST(Subprocess, a_missing_program_is_not_found_and_named) {
    try {
        Subprocess({.argv = {"gruca-no-such-program"}});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_NE(error.message().find("gruca-no-such-program"), std::string::npos);
    }
}

TEST(Subprocess, a_signal_is_told_from_an_exit_code) {
    Subprocess child({.argv = {"sleep", "60"}});
    EXPECT_EQ(child.wait_for(std::chrono::milliseconds(1)), std::nullopt);
    child.send_signal(SIGKILL);
    EXPECT_EQ(child.wait().signal, SIGKILL);
    EXPECT_EQ(child.wait().shell_code(), 137);
}

TEST(Subprocess, the_environment_given_is_the_whole_environment) {
    const RunResult result = run({.argv = {"/usr/bin/env"}, .environment = {{"A=1"}}});
    EXPECT_EQ(result.output, "A=1\n");
}

TEST(Subprocess, a_child_inherits_no_descriptor_beyond_the_first_three) {
    const UniqueFd open = open_file("/dev/null", O_RDONLY);
    ASSERT_EQ(::fcntl(open.get(), F_SETFD, 0), 0);  // As a library that forgets O_CLOEXEC.
    const RunResult result = run({.argv = {"sh", "-c", "ls /proc/self/fd | wc -l"}});
    EXPECT_EQ(result.output, "4\n");  // The fourth is the directory that ls reads.
}

}  // namespace
}  // namespace gruca
