#include "base/clock.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace gruca {
namespace {

TEST(Clock, times_are_written_in_both_forms_and_read_back) {
    const TimePoint time = time_from_ms(1767225600123);
    EXPECT_EQ(iso8601(time), "2026-01-01T00:00:00.123Z");
    EXPECT_EQ(iso8601_basic(time), "20260101T000000Z");
    EXPECT_EQ(time_from_iso8601(iso8601(time)), time);
    EXPECT_EQ(time_from_iso8601("20260101T000000Z"), time_from_ms(1767225600000));
}

TEST(Clock, malformed_times_are_refused) {
    for (const char* text :
         {"", "yesterday", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "20260101T250000Z",
          "2026-01-01T00:00:00+02:00", " 2026-01-01T00:00:00Z", "2026- 1-01T00:00:00Z",
          "2026-01-01T-1:00:00Z", "20260101T 1 1 1Z", "+2026101T000000Z"}) {
        EXPECT_THROW(time_from_iso8601(text), Error) << text;
    }
}

TEST(Clock, a_manual_clock_moves_only_when_told) {
    ManualClock clock(time_from_ms(5));
    clock.advance(Duration(7));
    EXPECT_EQ(to_ms(clock.now()), 12);
}

}  // namespace
}  // namespace gruca
