#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gruca {
namespace {

TEST(Log, a_message_is_one_line_whatever_is_in_it) {
    testing::internal::CaptureStderr();
    log_error("job {}: {}", "j", "first\n2026-01-01T00:00:00.000Z info   forged\t\x1b[2J\x7f é");
    const std::string line = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
    EXPECT_TRUE(line.ends_with(
        "job j: first\\n2026-01-01T00:00:00.000Z info   forged\\x09\\x1b[2J\\x7f é\n"))
        << line;
}

}  // namespace
}  // namespace gruca
