#include "base/process_id.h"

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/subprocess.h"

namespace gruca {
namespace {

TEST(ProcessId, survives_its_text_form) {
    const std::optional<ProcessId> self = process_id_of(::getpid());
    ASSERT_TRUE(self);
    EXPECT_EQ(ProcessId::from_text(self->to_text()), self);
    for (const char* text : {"", "12", "a b", "-3 4", "1 2 3"}) {
        EXPECT_FALSE(ProcessId::from_text(text)) << text;
    }
}

TEST(ProcessId, a_reused_pid_is_another_process) {
    ProcessId former = process_id_of(::getpid()).value();
    EXPECT_TRUE(open_process(former).is_open());
    former.start -= 1;
    EXPECT_FALSE(open_process(former).is_open());
}

TEST(ProcessId, its_end_is_seen_and_a_zombie_has_ended) {
    Subprocess child({.argv = {"sleep", "60"}});
    const ProcessId id = process_id_of(child.pid()).value();
    const UniqueFd process = open_process(id);
    EXPECT_FALSE(wait_for_end(process, std::chrono::milliseconds(0)));
    signal_process(process, SIGKILL);
    EXPECT_TRUE(wait_for_end(process, std::chrono::seconds(10)));
    EXPECT_FALSE(process_id_of(id.pid));
    EXPECT_FALSE(open_process(id).is_open());
}

}  // namespace
}  // namespace gruca
