#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/boundary.h"
#include "base/error.h"

namespace gruca::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CommandShape kShape{
    .name = "gruca job stop",
    .summary = "Stops a training job. The job writes a final checkpoint.",
    .options = {{.name = "--now", .help = "Do not wait for a checkpoint."},
                {.name = "--wait", .value = "<duration>", .help = "Return when it has stopped."},
                {.name = "--tag",
                 .value = "<name=value>",
                 .help = "A tag.",
                 .short_name = "-t",
                 .may_repeat = true}},
    .operands = {"<job>", "[reason]"},
    .example = "gruca job stop llama-7b-0412 --wait 5m"};

std::string message_of(const CommandShape& shape, const std::vector<std::string>& words) {
    const auto error = run_guarded([&] { Arguments::parse(shape, words); });
    if (!error) return "accepted";
    EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
    return error->message();
}

TEST(Arguments, options_take_their_value_in_either_form_and_stand_anywhere) {
    const Arguments arguments =
        Arguments::parse(kShape, {"--wait=5m", "job", "--tag", "a=b=c", "-t", "--now", "--now"});
    EXPECT_EQ(arguments.get("--wait"), "5m");
    EXPECT_EQ(arguments.operand(0), "job");
    EXPECT_EQ(arguments.operand(1), "");
    EXPECT_THAT(arguments.all("--tag"), ElementsAre("a=b=c", "--now"));
    EXPECT_TRUE(arguments.has("--now"));
    EXPECT_THAT(arguments.all("--other"), IsEmpty());
}

TEST(Arguments, mistakes_are_named_and_say_what_was_meant) {
    EXPECT_THAT(message_of(kShape, {"job", "--wiat", "5m"}), HasSubstr("did you mean --wait?"));
    EXPECT_THAT(message_of(kShape, {"job", "--wait"}), HasSubstr("--wait needs a value"));
    EXPECT_THAT(message_of(kShape, {"job", "--now=yes"}), HasSubstr("takes no value"));
    EXPECT_THAT(message_of(kShape, {"job", "--now", "--now"}), HasSubstr("twice"));
    EXPECT_THAT(message_of(kShape, {}), HasSubstr("missing <job>"));
    EXPECT_THAT(message_of(kShape, {"a", "b", "c"}), HasSubstr("unexpected word: c"));
    EXPECT_THAT(message_of(kShape, {"a", "--", "b"}), HasSubstr("--"));
    EXPECT_THAT(message_of(kShape, {"--zzz"}), HasSubstr("gruca job stop --help"));
}

TEST(Arguments, help_is_there_whatever_else_is_wrong_with_the_operands) {
    EXPECT_TRUE(Arguments::parse(kShape, {"--help"}).wants_help());
    EXPECT_TRUE(Arguments::parse(kShape, {"a", "b", "c", "-h"}).wants_help());
}

TEST(Arguments, words_after_two_dashes_are_left_alone_where_a_command_is_taken) {
    CommandShape shape = kShape;
    shape.rest = RestOfWords::command;
    const Arguments arguments = Arguments::parse(shape, {"job", "--", "sh", "-c", "--", "--now"});
    EXPECT_THAT(arguments.rest(), ElementsAre("sh", "-c", "--", "--now"));
    EXPECT_FALSE(arguments.has("--now"));
}

TEST(Arguments, unknown_words_pass_through_in_order_where_they_may) {
    CommandShape shape = kShape;
    shape.operands = {};
    shape.rest = RestOfWords::unknown;
    const Arguments arguments =
        Arguments::parse(shape, {"--slots", "8", "--wait", "1", "--no-profile"});
    EXPECT_EQ(arguments.get("--wait"), "1");
    EXPECT_THAT(arguments.rest(), ElementsAre("--slots", "8", "--no-profile"));
}

TEST(Arguments, help_has_the_shape_of_the_house) {
    EXPECT_EQ(help_text(kShape), R"(Usage: gruca job stop [options] <job> [reason]

  Stops a training job. The job writes a final checkpoint.

Options:
  --now                 Do not wait for a checkpoint.
  --wait <duration>     Return when it has stopped.
  -t, --tag <name=value>
                        A tag.
  -h, --help            Print this.

Example:
  gruca job stop llama-7b-0412 --wait 5m
)");
}

TEST(Arguments, durations_are_read_in_seconds_minutes_hours_and_days) {
    EXPECT_EQ(parse_duration("90").count(), 90);
    EXPECT_EQ(parse_duration("90s").count(), 90);
    EXPECT_EQ(parse_duration("1h30m").count(), 5400);
    EXPECT_EQ(parse_duration("2d").count(), 172800);
    for (const char* text : {"", "s", "1x", "-1", "1.5h", "1h30", "9999999999", "9999999999h"}) {
        EXPECT_THROW(parse_duration(text), Error) << text;
    }
}

TEST(Arguments, pairs_and_counts_are_checked) {
    EXPECT_EQ(parse_pair("--env", "A=b=c"), (std::pair<std::string, std::string>("A", "b=c")));
    EXPECT_EQ(parse_pair("--env", "A=").second, "");
    EXPECT_THROW(parse_pair("--env", "A"), Error);
    EXPECT_THROW(parse_pair("--env", "=b"), Error);
    EXPECT_EQ(parse_count("--max", "5", 1), 5);
    EXPECT_THROW(parse_count("--max", "0", 1), Error);
    EXPECT_THROW(parse_count("--max", "five", 1), Error);
}

}  // namespace
}  // namespace gruca::cli
