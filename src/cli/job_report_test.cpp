// What a person is told of a job: its timeline, its nodes, and what to do about its failure.
#include "cli/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace gruca::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kBegin = 1796117400;  // 2026-12-01T09:30:00Z

TimePoint at(double seconds) {
    return time_from_ms(kBegin * 1000 + static_cast<std::int64_t>(seconds * 1000));
}

class Timeline : public testing::Test {
  protected:
    void enter(const std::string& status, double second, const std::string& message = "message") {
        if (!rows.as_array().empty()) {
            rows.as_array().back().set("EndTime", static_cast<double>(kBegin) + second);
        }
        rows.push(Json::object({{"Status", status},
                                {"StartTime", static_cast<double>(kBegin) + second},
                                {"StatusMessage", message}}));
    }
    std::string text(double now) const {
        return timeline_text(Json::object({{"SecondaryStatusTransitions", rows}}), at(now));
    }

    Json rows = Json::array();
};

TEST_F(Timeline, shows_each_stage_its_length_and_the_end) {
    enter("Starting", 0);
    enter("Pending", 0, "Training job waiting for capacity");
    enter("Pending", 10, "Preparing the instances for training");
    enter("Downloading", 11.5);
    enter("Training", 12);
    enter("Uploading", 132);
    enter("Failed", 140, "Training job failed");
    rows.as_array().back().set("EndTime", static_cast<double>(kBegin) + 140);
    EXPECT_EQ(text(1000),
              "Timeline:\n"
              "  09:30:00  queued            10.0 s  ##\n"
              "  09:30:10  starting           1.5 s\n"
              "  09:30:11  downloading        0.5 s\n"
              "  09:30:12  training      2 min 00 s  #####################\n"
              "  09:32:12  uploading          8.0 s  #\n"
              "  09:32:20  Failed: Training job failed\n");
}

TEST_F(Timeline, the_stage_a_job_is_in_counts_up_to_now) {
    enter("Starting", 0);
    enter("Training", 1);
    EXPECT_EQ(text(4),
              "Timeline:\n"
              "  09:30:00  queued             1.0 s  ######\n"
              "  09:30:01  training           3.0 s  ################## so far\n");
}

TEST_F(Timeline, a_clock_behind_the_services_gives_no_negative_length) {
    enter("Starting", 5);
    EXPECT_THAT(text(0), HasSubstr("0.0 s  so far"));
}

TEST_F(Timeline, a_job_stopped_while_it_waits_has_a_stage_of_stopping) {
    enter("Starting", 0);
    enter("Stopping", 2);
    enter("Stopped", 3, "Training job stopped");
    EXPECT_THAT(text(9), AllOf(HasSubstr("stopping           1.0 s"),
                               HasSubstr("Stopped: Training job stopped")));
}

TEST(Nodes, say_where_they_are_and_how_they_ended) {
    const Json nodes = Json::parse(R"json({"Nodes": [
        {"Host": "algo-1", "Address": "127.64.0.1", "Phase": "training", "Ended": false},
        {"Host": "algo-2", "Address": "127.64.0.2", "Phase": "uploading", "Ended": true,
         "ExitCode": 137, "ExitSignal": 9, "Failure": "out of memory on algo-2\nlast line"},
        {"Host": "algo-3", "Address": "127.64.0.3", "Phase": "training", "Lost": true,
         "LostWhy": "its agent was killed by signal 9 (Killed)"}]})json");
    EXPECT_EQ(nodes_text(nodes),
              "Nodes:\n"
              "  algo-1    127.64.0.1       training\n"
              "  algo-2    127.64.0.2       uploading, ended by signal 9: out of memory on algo-2\n"
              "  algo-3    127.64.0.3       lost: its agent was killed by signal 9 (Killed)\n");
    EXPECT_EQ(nodes_text(Json::parse(R"({"Nodes": []})")), "");
}

TEST(FailureHints, every_hint_names_a_section_of_the_guide) {
    const std::string guide = read_file(GRUCA_SOURCE_DIR "/docs/guide/when-a-job-fails.md");
    for (const FailureHint& hint : failure_hints()) {
        EXPECT_THAT(guide, HasSubstr("\n## " + hint.section + "\n")) << hint.pattern;
    }
}

TEST(FailureHints, the_most_telling_word_decides) {
    EXPECT_THAT(
        hint_text("AlgorithmError: out of memory on algo-1: limit 64 MiB, exit code: 137", "llm"),
        HasSubstr("Out of memory"));
    EXPECT_THAT(hint_text("ClientError: Artifact upload failed: No space left on device", "llm"),
                HasSubstr("Not enough disk space"));
    EXPECT_THAT(hint_text("AlgorithmError: ValueError: bad, exit code: 1", "llm"),
                AllOf(StartsWith("Hint: "), HasSubstr("The program failed")));
    EXPECT_THAT(hint_text("InternalServerError: node algo-2 was lost: its agent was killed by "
                          "signal 9 (Killed)",
                          "llm"),
                AllOf(HasSubstr("A node was lost"), Not(HasSubstr("Killed by a signal"))));
}

TEST(FailureHints, a_reason_that_no_row_knows_leads_to_the_log) {
    EXPECT_THAT(hint_text("never heard of", "llm"), HasSubstr("gruca job logs llm"));
}

}  // namespace
}  // namespace gruca::cli
