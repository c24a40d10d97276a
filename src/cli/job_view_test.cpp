// Logs and the following of a job, against a job that goes on while it is watched.
#include "cli/job_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/fake_world.h"
#include "cli/progress.h"

namespace gruca::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kBegin = 1796117400000;  // 2026-12-01T09:30:00Z

// A job whose log and statuses a test writes; pages hold two events, as the API's may.
class FollowedJob : public testing::Test {
  protected:
    void SetUp() override {
        world.run_service();
        world.answers["DescribeTrainingJob"] = [this](const Json&) { return describe(); };
        world.answers["DescribeLogStreams"] = [this](const Json& asked) {
            EXPECT_EQ(asked.get_string("logGroupName"), "/aws/sagemaker/TrainingJobs");
            EXPECT_EQ(asked.get_string("logStreamNamePrefix"), "job/");
            if (log.empty()) throw Error(ErrorCode::not_found, "ResourceNotFoundException: none");
            Json streams = Json::array();
            for (const auto& [name, events] : log) {
                streams.push(Json::object({{"logStreamName", name}}));
            }
            return Json::object({{"logStreams", streams}});
        };
        world.answers["GetLogEvents"] = [this](const Json& asked) { return page(asked); };
    }

    Json page(const Json& asked) {
        EXPECT_TRUE(asked.get_bool("startFromHead"));
        const auto& events = log.at(asked.at("logStreamName").as_string());
        std::size_t at = std::stoul(asked.get_string("nextToken", "0"));
        Json some = Json::array();
        for (int n = 0; n < 2 && at < events.size(); ++n) some.push(events[at++]);
        return Json::object({{"events", some}, {"nextForwardToken", std::to_string(at)}});
    }

    Json describe() const {
        Json description = Json::object({{"TrainingJobName", "job"},
                                         {"TrainingJobStatus", status},
                                         {"SecondaryStatusTransitions", transitions}});
        description.set("ResourceConfig", Json::object({{"InstanceCount", instances}}));
        if (status != "InProgress") {
            description.set("BillableTimeInSeconds", 12);
            description.set("ModelArtifacts",
                            Json::object({{"S3ModelArtifacts", "s3://out/job/model/"}}));
            if (status == "Failed") description.set("FailureReason", "AlgorithmError: it broke");
        }
        return description;
    }

    void enter(const std::string& secondary, int second) {
        transitions.push(Json::object({{"Status", secondary},
                                       {"StartTime", (kBegin + second * 1000) / 1000},
                                       {"StatusMessage", "message"}}));
    }

    void write(const std::string& host, const std::string& message, int second) {
        log["job/" + host + "-1796117400"].push_back(
            Json::object({{"timestamp", kBegin + second * 1000}, {"message", message}}));
    }

    void write_step(int step, int second) {
        write("algo-1",
              spec::event_line(spec::StepEvent{.step = step,
                                               .steps = 400,
                                               .loss = 5.5,
                                               .tokens = step * 1000,
                                               .tokens_per_second = 2000}),
              second);
    }

    FakeWorld world;
    std::map<std::string, std::vector<Json>> log;
    std::string status = "InProgress";
    Json transitions = Json::array();
    int instances = 1;
};

TEST_F(FollowedJob, logs_prints_what_there_is_and_returns) {
    for (int i = 0; i < 5; ++i) write("algo-1", "line " + std::to_string(i), i);
    enter("Training", 0);
    EXPECT_EQ(world.printed({"job", "logs", "job"}), "line 0\nline 1\nline 2\nline 3\nline 4\n");
    EXPECT_EQ(world.pauses, 0);
}

TEST_F(FollowedJob, a_job_without_a_log_yet_has_no_lines) {
    EXPECT_EQ(world.printed({"job", "logs", "job"}), "");
}

TEST_F(FollowedJob, following_shows_statuses_lines_and_the_end_in_order_of_time_once) {
    instances = 2;
    enter("Starting", 0);
    int round = 0;
    world.on_pause = [&] {
        ++round;
        if (round == 1) {
            enter("Training", 2);
            write("algo-1", "one", 3);
        }
        if (round == 2) {  // The second stream appears late.
            write("algo-2", "two", 4);
            write("algo-1", "three", 5);
        }
        if (round == 3) {
            enter("Completed", 9);
            write("algo-2", "last", 8);
            status = "Completed";
        }
    };
    EXPECT_EQ(world.printed({"job", "logs", "--follow", "job"}),
              "09:30:00  Starting     message\n"
              "09:30:02  Training     message\n"
              "algo-1 | one\n"
              "algo-2 | two\n"
              "algo-1 | three\n"
              "algo-2 | last\n"
              "09:30:09  Completed    message\n"
              "job is Completed; billable seconds: 12\n"
              "Model: s3://out/job/model/\n"
              "  fetch it: gruca store cp -r s3://out/job/model/ .\n");
}

TEST_F(FollowedJob, a_failed_job_gives_its_reason_and_an_exit_code) {
    status = "Failed";
    EXPECT_EQ(world.run({"job", "logs", "--follow", "job"}), kExitJobFailed);
    EXPECT_THAT(world.out.str(),
                AllOf(HasSubstr("Reason: AlgorithmError: it broke"), Not(HasSubstr("Model"))));
}

TEST_F(FollowedJob, events_are_hidden_unless_asked_for) {
    write("algo-1", "for people", 1);
    write_step(10, 2);
    write("algo-1", R"({"not":"an event"})", 3);
    EXPECT_EQ(world.printed({"job", "logs", "job"}), "for people\n{\"not\":\"an event\"}\n");
    EXPECT_THAT(world.printed({"job", "logs", "job", "--raw"}), HasSubstr("\"event\":\"step\""));
}

TEST_F(FollowedJob, json_is_every_event_of_the_log_a_line_each) {
    write("algo-1", "for people", 1);
    EXPECT_EQ(world.printed({"job", "logs", "job", "--json"}),
              "{\"timestamp\":1796117401000,\"message\":\"for people\","
              "\"logStreamName\":\"job/algo-1-1796117400\"}\n");
}

TEST_F(FollowedJob, progress_is_a_line_every_ten_seconds_where_nothing_can_be_redrawn) {
    int step = 0;
    world.on_pause = [&] {
        step += 1;
        write_step(step, step);
        if (step == 250) status = "Completed";  // A tenth of a second a step: 25 s.
    };
    const std::string output = world.printed({"job", "logs", "--follow", "job"});
    EXPECT_THAT(output, HasSubstr("step 1/400  loss 5.5000  2,000 tokens/s  3 min 20 s left\n"));
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = output.find("step ", at)) != std::string::npos; ++at) ++lines;
    EXPECT_EQ(lines, 3u);
    EXPECT_THAT(output, Not(HasSubstr("\r")));
}

TEST_F(FollowedJob, progress_is_redrawn_in_place_on_a_terminal) {
    world.is_terminal = true;
    write_step(1, 1);
    world.on_pause = [&] {
        if (status == "InProgress") write("algo-1", "a line", 2);
        status = "Completed";
    };
    const std::string drawn = "step 1/400  loss 5.5000  2,000 tokens/s  3 min 20 s left";
    EXPECT_THAT(world.printed({"job", "logs", "--follow", "job"}),
                HasSubstr(drawn + "\r" + std::string(drawn.size(), ' ') + "\ra line\n"));
}

TEST_F(FollowedJob, ctrl_c_leaves_the_job_alone_and_says_so) {
    world.on_pause = [&] { world.is_interrupted = true; };
    EXPECT_EQ(world.run({"job", "logs", "-f", "job"}), kExitInterrupted);
    EXPECT_THAT(world.err.str(),
                AllOf(HasSubstr("the job goes on"), HasSubstr("gruca job stop job")));
    for (const auto& [operation, request] : world.calls) EXPECT_NE(operation, "StopTrainingJob");
}

TEST_F(FollowedJob, create_can_follow_what_it_made) {
    world.answers["CreateTrainingJob"] = [&](const Json&) {
        status = "Completed";
        write("algo-1", "hi there", 1);
        return Json::object({{"TrainingJobArn", "arn:job"}});
    };
    EXPECT_THAT(
        world.printed({"job", "create", "--name", "job", "--follow"}),
        AllOf(HasSubstr("created job"), HasSubstr("hi there"), HasSubstr("job is Completed")));
}

TEST(TrainingProgress, tells_step_loss_speed_and_time_left) {
    TrainingProgress progress;
    EXPECT_FALSE(progress.take("a human line"));
    EXPECT_EQ(progress.line(), std::nullopt);
    EXPECT_TRUE(progress.take(spec::event_line(spec::StepEvent{
        .step = 100, .steps = 400, .loss = 5.25, .tokens = 400000, .tokens_per_second = 12345.6})));
    EXPECT_TRUE(progress.take(spec::event_line(spec::EvalEvent{.step = 100, .eval_loss = 5.5})));
    EXPECT_EQ(progress.line(),
              "step 100/400  loss 5.2500  validation 5.5000  12,346 tokens/s  1 min 37 s left");
    progress.take(
        spec::event_line(spec::StepEvent{.step = 400, .steps = 400, .loss = 5, .tokens = 1600000}));
    EXPECT_EQ(progress.line(), "step 400/400  loss 5.0000  validation 5.5000");
}

TEST(TrainingProgress, numbers_are_grouped_by_thousands) {
    EXPECT_EQ(with_commas(0), "0");
    EXPECT_EQ(with_commas(999), "999");
    EXPECT_EQ(with_commas(1000), "1,000");
    EXPECT_EQ(with_commas(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace gruca::cli
