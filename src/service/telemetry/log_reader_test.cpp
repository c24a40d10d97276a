// The promises of service/telemetry/log_reader.h and log_page.h.

#include "service/telemetry/log_reader.h"

#include <gmock/gmock.h>

#include "base/temp_dir.h"
#include "base/text.h"
#include "service/telemetry/log_page.h"

namespace gruca::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LogReaderTest : public testing::Test {
  protected:
    void append(std::string_view bytes, std::int64_t ms = 1) {
        store.append(log, store.size(log), bytes, time_from_ms(ms));
    }
    LogReader reader(bool complete = false) const { return LogReader(store.files(log), complete); }

    static std::vector<std::string> messages(const std::vector<LogEvent>& events) {
        std::vector<std::string> found;
        for (const LogEvent& event : events) found.push_back(event.message);
        return found;
    }
    std::vector<std::string> all(bool complete = false) const {
        LogReader log_reader = reader(complete);
        return messages(page_forward(log_reader, 0, {}).events);
    }
    static std::vector<std::int64_t> times(const LogPage& page) {
        std::vector<std::int64_t> found;
        for (const LogEvent& event : page.events) found.push_back(to_ms(event.at));
        return found;
    }

    const TempDir scratch;
    const LogName log{.job = "job", .host = "algo-1"};
    LogStore store{scratch.path()};
};

TEST_F(LogReaderTest, a_log_that_does_not_exist_is_empty) {
    LogReader empty = reader();
    EXPECT_EQ(empty.size(), 0u);
    EXPECT_FALSE(empty.next(0));
    EXPECT_FALSE(empty.last_time());
    EXPECT_EQ(page_backward(empty, 0, {}).end, 0u);
}

TEST_F(LogReaderTest, a_line_is_an_event_and_an_empty_line_is_a_blank) {
    append("one\n\ntwo\r\n");
    EXPECT_THAT(all(), ElementsAre("one", " ", "two"));
}

TEST_F(LogReaderTest, a_progress_bar_is_seen_while_it_moves) {
    append("\r 10%\r 20%\r 30%");
    EXPECT_THAT(all(), ElementsAre(" 10%", " 20%"));
    append("\ndone\n");
    EXPECT_THAT(all(), ElementsAre(" 10%", " 20%", " 30%", "done"));
}

TEST_F(LogReaderTest, an_unfinished_line_waits_unless_the_log_is_complete) {
    append("whole\nhal");
    EXPECT_THAT(all(), ElementsAre("whole"));
    EXPECT_THAT(all(true), ElementsAre("whole", "hal"));
    append("f\n");
    EXPECT_THAT(all(), ElementsAre("whole", "half"));
}

TEST_F(LogReaderTest, a_return_at_the_end_may_be_half_of_a_line_end) {
    append("a\r");
    EXPECT_THAT(all(), IsEmpty());
    EXPECT_THAT(all(true), ElementsAre("a"));
    append("\nb\n");
    EXPECT_THAT(all(), ElementsAre("a", "b"));
}

TEST_F(LogReaderTest, a_place_and_then_its_event_are_what_next_gives) {
    append("one\n\n" + std::string(kEventBytesMax + 10, 'x') + "\r\nlast");
    LogReader whole = reader(true);
    LogReader steps = reader(true);
    std::uint64_t from = 0;
    std::size_t events = 0;
    while (const auto event = whole.next(from)) {
        const auto place = steps.next_place(from);
        ASSERT_TRUE(place);
        const LogEvent same = steps.event_at(*place);
        EXPECT_EQ(same.message, event->message);
        EXPECT_EQ(std::pair(same.offset, same.end), std::pair(event->offset, event->end));
        EXPECT_EQ(same.at, event->at);
        from = event->end;
        ++events;
    }
    EXPECT_EQ(events, 5u);
    EXPECT_FALSE(steps.next_place(from));
}

TEST_F(LogReaderTest, bytes_that_are_no_text_are_shown_as_replacement_characters) {
    append(std::string("a\x80z\0q\n", 6));
    EXPECT_THAT(all(), ElementsAre(std::string("a\xef\xbf\xbdz\0q", 7)));
    EXPECT_TRUE(is_utf8(all().at(0)));
}

TEST_F(LogReaderTest, a_character_cut_between_two_appends_is_whole) {
    append("\xc3");
    append("\xa9\n", 2);
    EXPECT_THAT(all(), ElementsAre("\xc3\xa9"));
}

TEST_F(LogReaderTest, a_long_line_is_cut_between_characters_and_loses_nothing) {
    std::string line = "x";
    while (line.size() < 3 * kEventBytesMax) line += "\xc3\xa9";
    append(line + "\n" + std::string(kEventBytesMax, 'y') + "\nend\n");
    const std::vector<std::string> events = all();
    LogReader log_reader = reader();
    std::string joined;
    std::vector<std::string> found;
    for (std::uint64_t at = 0;;) {
        const auto event = log_reader.next(at);
        if (!event) break;
        at = event->end;
        EXPECT_LE(event->message.size(), kEventBytesMax);
        EXPECT_TRUE(is_utf8(event->message));
        if (event->message[0] != 'y' && event->message != "end") joined += event->message;
        found.push_back(event->message);
    }
    EXPECT_EQ(joined, line);
    EXPECT_EQ(found.size(), 6u);  // Three and a little more, the line of just the limit, the end.
    EXPECT_EQ(found.back(), "end");
}

TEST_F(LogReaderTest, a_million_returns_are_read_in_one_go_and_the_line_behind_them) {
    append(std::string(1'000'000, '\r') + "\nafter\n");
    EXPECT_THAT(all(), ElementsAre(" ", "after"));
}

TEST_F(LogReaderTest, a_gap_is_one_event_between_head_and_tail_from_wherever_one_reads) {
    const LogQuota quota{.head_bytes = 40, .tail_bytes = 40, .step_bytes = 20};
    LogStore small(scratch.path() / "small", quota);
    std::string text;
    for (int i = 100; i < 200; ++i) text += "line " + std::to_string(i) + "\n";  // 9 bytes each.
    small.append(log, 0, text, time_from_ms(1));
    LogReader log_reader(small.files(log), false);
    const std::vector<std::string> events = messages(page_forward(log_reader, 0, {}).events);
    ASSERT_EQ(events.size(), 5u + 1 + 5);
    EXPECT_EQ(events[3], "line 103");
    EXPECT_EQ(events[4], "line");  // Cut where the head ends.
    EXPECT_THAT(events[5], testing::StartsWith("[gruca: 820 bytes are not kept here"));
    EXPECT_EQ(events[6], "195");  // Byte 860 is in the middle of a line.
    EXPECT_EQ(events[10], "line 199");
    for (std::uint64_t inside : {40u, 41u, 500u, 859u}) {
        EXPECT_EQ(log_reader.next(inside)->end, 860u);
        EXPECT_EQ(log_reader.event_start(inside), 40u);
    }
    EXPECT_EQ(log_reader.event_start(861), 860u);
    EXPECT_EQ(messages(page_backward(log_reader, log_reader.size(), {}).events), events);
}

TEST_F(LogReaderTest, an_event_has_the_time_of_its_first_byte_and_time_never_goes_back) {
    append("a\nb", 100);
    append("b\nc\n", 50);  // The clock was set back.
    append("d\n", 200);
    LogReader log_reader = reader();
    EXPECT_THAT(times(page_forward(log_reader, 0, {})), ElementsAre(100, 100, 100, 200));
    EXPECT_EQ(log_reader.first_time(), time_from_ms(100));
    EXPECT_EQ(log_reader.last_time(), time_from_ms(200));
}

TEST_F(LogReaderTest, a_page_ends_at_its_limits_and_the_next_goes_on) {
    for (int i = 0; i < 10; ++i) append("line " + std::to_string(i) + "\n", i);
    LogReader log_reader = reader();
    const LogPage first = page_forward(log_reader, 0, {.events_max = 4});
    EXPECT_EQ(messages(first.events).back(), "line 3");
    const LogPage second = page_forward(log_reader, first.end, {.bytes_max = 70});
    EXPECT_THAT(messages(second.events), ElementsAre("line 4", "line 5"));
    const LogPage back = page_backward(log_reader, second.begin, {.events_max = 2});
    EXPECT_THAT(messages(back.events), ElementsAre("line 2", "line 3"));
    EXPECT_EQ(back.begin, 14u);
    EXPECT_THAT(page_forward(log_reader, log_reader.size(), {}).events, IsEmpty());
}

TEST_F(LogReaderTest, times_bound_a_page_from_both_sides) {
    for (int i = 0; i < 10; ++i) append("line " + std::to_string(i) + "\n", 10 * i);
    LogReader log_reader = reader();
    const PageLimits middle{.start = time_from_ms(30), .end = time_from_ms(60)};
    const std::uint64_t from = first_place(log_reader, middle);
    EXPECT_THAT(times(page_forward(log_reader, from, middle)), ElementsAre(30, 40, 50));
    const std::uint64_t until = last_place(log_reader, middle);
    EXPECT_THAT(times(page_backward(log_reader, until, middle)), ElementsAre(30, 40, 50));
    const PageLimits later{.start = time_from_ms(1000)};
    EXPECT_THAT(page_forward(log_reader, first_place(log_reader, later), later).events, IsEmpty());
}

TEST_F(LogReaderTest, a_line_that_began_before_the_start_is_not_in_the_page) {
    append("began early", 10);
    append(" ended late\nnext\n", 20);
    LogReader log_reader = reader();
    const PageLimits limits{.start = time_from_ms(20)};
    EXPECT_THAT(messages(page_forward(log_reader, first_place(log_reader, limits), limits).events),
                ElementsAre("next"));
}

TEST_F(LogReaderTest, the_last_page_of_a_long_log_equals_its_last_lines) {
    std::string text;
    for (int i = 0; i < 60'000; ++i) text += "line number " + std::to_string(i) + "\n";
    append(text);
    LogReader log_reader = reader();
    const LogPage page = page_backward(log_reader, log_reader.size(), {});
    ASSERT_EQ(page.events.size(), kPageEventsMax);
    EXPECT_EQ(page.events.front().message, "line number 50000");
    EXPECT_EQ(page.events.back().message, "line number 59999");
    std::size_t seen = page.events.size();
    for (std::uint64_t until = page.begin; until > 0;) {
        const LogPage earlier = page_backward(log_reader, until, {});
        ASSERT_FALSE(earlier.events.empty());
        EXPECT_EQ(earlier.end, until);
        seen += earlier.events.size();
        until = earlier.begin;
    }
    EXPECT_EQ(seen, 60'000u);
}

}  // namespace
}  // namespace gruca::service
