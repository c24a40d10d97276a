#include "agent/remote_shell_wire.h"

#include <sys/socket.h>

#include <gtest/gtest.h>

#include <array>

#include "agent/remote_shell.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

class RemoteShellWire : public testing::Test {
  protected:
    void SetUp() override {
        std::array<int, 2> ends;
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        here.reset(ends[0]);
        there.reset(ends[1]);
    }
    void send_raw(std::string_view bytes) { write_all(there.get(), bytes_of(bytes)); }

    UniqueFd here, there;
};

TEST_F(RemoteShellWire, frames_arrive_whole_and_in_order) {
    send_frame(there.get(), {.kind = FrameKind::output, .bytes = std::string("a\0b", 3)});
    send_frame(there.get(), {.kind = FrameKind::exit_code, .bytes = ""});
    there.reset();
    const auto first = read_frame(here.get());
    ASSERT_TRUE(first);
    EXPECT_EQ(first->kind, FrameKind::output);
    EXPECT_EQ(first->bytes, std::string("a\0b", 3));
    EXPECT_EQ(read_frame(here.get())->kind, FrameKind::exit_code);
    EXPECT_FALSE(read_frame(here.get()));
}

TEST_F(RemoteShellWire, a_frame_too_long_is_not_waited_for) {
    send_raw(std::string("o\xff\xff\xff\xff", 5));
    EXPECT_THROW(read_frame(here.get()), Error);
}

TEST_F(RemoteShellWire, half_a_frame_is_a_broken_connection) {
    send_raw(std::string("o\0\0\0\5abc", 8));
    there.reset();
    EXPECT_THROW(read_frame(here.get()), Error);
}

TEST_F(RemoteShellWire, half_a_head_is_no_frame) {
    send_raw("o");
    there.reset();
    EXPECT_THROW(read_frame(here.get()), Error);
}

TEST(RemoteShellSecret, a_signature_holds_for_one_command_one_challenge_and_one_job) {
    const std::string signature = sign_command("secret", "challenge", "true");
    EXPECT_TRUE(is_same(signature, sign_command("secret", "challenge", "true")));
    EXPECT_FALSE(is_same(signature, sign_command("secret", "challenge", "false")));
    EXPECT_FALSE(is_same(signature, sign_command("secret", "other", "true")));
    EXPECT_FALSE(is_same(signature, sign_command("Secret", "challenge", "true")));
    EXPECT_FALSE(is_same(signature, ""));
    EXPECT_NE(sign_command("s", "a", "b\nc"), sign_command("s", "a\nb", "c"));
}

TEST(RemoteShellSecret, is_the_jobs_and_does_not_show_its_key) {
    spec::Task one, other;
    one.job_name = other.job_name = "job";
    one.job_secret_key = "key";
    other.job_secret_key = "another";
    EXPECT_EQ(remote_shell_secret(one), remote_shell_secret(one));
    EXPECT_NE(remote_shell_secret(one), remote_shell_secret(other));
    EXPECT_EQ(remote_shell_secret(one).find("key"), std::string::npos);
}

}  // namespace
}  // namespace gruca::agent
