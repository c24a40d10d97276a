// The ordinary life of a job, its tags, and what survives a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing.h"

namespace gruca::control {
namespace {

using namespace std::chrono_literals;
using control::testing::Control;
using spec::NodePhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(Control, a_job_lives_through_its_phases_to_completed) {
    const Reply reply = create("llm", 2);
    EXPECT_FALSE(reply.error);
    EXPECT_EQ(reply.body.at("TrainingJobArn").as_string(), job("llm").spec.arn);
    EXPECT_EQ(said<LaunchNode>().size(), 2u);
    EXPECT_EQ(said<JobChanged>().size(), 1u);
    EXPECT_THAT(story("llm"), ElementsAre("Starting", "Pending"));

    report("llm", 1, NodePhase::ready);
    EXPECT_FALSE(job("llm").training_started);
    now += 5s;
    report("llm", 2, NodePhase::ready);
    EXPECT_EQ(job("llm").training_started, now);
    EXPECT_EQ(job("llm").secondary, "Downloading");
    report("llm", 1, NodePhase::training);
    EXPECT_EQ(job("llm").secondary, "Downloading");
    report("llm", 2, NodePhase::training);
    EXPECT_EQ(job("llm").secondary, "Training");

    end_program("llm", 1);
    EXPECT_EQ(job("llm").secondary, "Training");
    end_program("llm", 2);
    EXPECT_EQ(job("llm").secondary, "Uploading");
    report("llm", 2, NodePhase::uploaded);
    EXPECT_FALSE(node("llm", 1).assemble);
    report("llm", 1, NodePhase::uploaded);
    EXPECT_TRUE(node("llm", 1).assemble);
    EXPECT_FALSE(node("llm", 2).assemble);
    EXPECT_FALSE(node("llm", 1).released);

    now += 7s;
    report("llm", 1, NodePhase::assembled);
    const TimePoint done = now;
    EXPECT_TRUE(node("llm", 1).released && node("llm", 2).released);
    EXPECT_EQ(job("llm").status, "InProgress") << "terminal while its agents still run";
    now += 3s;
    lose("llm", 1, "it exited");
    EXPECT_EQ(job("llm").status, "InProgress");
    lose("llm", 2, "it exited");
    EXPECT_EQ(job("llm").status, "Completed");
    EXPECT_EQ(job("llm").ended, done) << "cleaning up is not billed";
    EXPECT_EQ(job("llm").failure_reason, "");
    EXPECT_THAT(story("llm"), ElementsAre("Starting", "Pending", "Downloading", "Training",
                                          "Uploading", "Completed"));
}

TEST_F(Control, phases_passed_unseen_are_shown_all_the_same) {
    create("quick");
    end_program("quick", 1, 0, "", NodePhase::uploaded);
    EXPECT_THAT(story("quick"),
                ElementsAre("Starting", "Pending", "Downloading", "Training", "Uploading"));
    EXPECT_EQ(job("quick").training_started, now);
}

TEST_F(Control, rows_follow_each_other_in_time_and_never_repeat_their_message) {
    create("big", 4);
    create("small");
    run_to_end("big");
    now -= 1h;  // The clock is set back.
    run_to_end("small");
    for (const char* name : {"big", "small"}) {
        const auto& rows = job(name).transitions;
        for (std::size_t i = 1; i < rows.size(); ++i) {
            EXPECT_NE(rows[i].message, rows[i - 1].message);
            EXPECT_EQ(rows[i].start, rows[i - 1].end);
            EXPECT_GE(rows[i].start, rows[i - 1].start);
        }
        EXPECT_TRUE(rows.back().end);
    }
    EXPECT_THAT(story("small"), ElementsAre("Starting", "Pending", "Pending", "Downloading",
                                            "Training", "Uploading", "Completed"));
}

TEST_F(Control, a_report_that_says_nothing_new_does_nothing) {
    create("llm");
    report("llm", 1, NodePhase::training);
    report("llm", 1, NodePhase::training);
    EXPECT_THAT(last, IsEmpty());
    report("llm", 1, NodePhase::ready);  // An old one, late.
    EXPECT_THAT(last, IsEmpty());
    EXPECT_EQ(node("llm", 1).report.phase, NodePhase::training);
}

TEST_F(Control, a_terminal_job_hears_nothing_any_more) {
    create("llm");
    const std::string node_id = id("llm", 1);
    run_to_end("llm");
    const Json before = job("llm").to_json();
    happen(NodeReported{.report = {.node_id = node_id, .ended = true, .exit_code = 1}});
    happen(NodeLost{.node_id = node_id, .why = "late"});
    happen(NodeRemoved{.node_id = node_id});
    wait(100h);
    EXPECT_EQ(job("llm").to_json(), before);
    EXPECT_FALSE(order_for(state, node_id));
}

TEST_F(Control, what_is_said_of_unknown_nodes_is_ignored) {
    happen(NodeReported{.report = {.node_id = "nobody-algo-1-abcdef"}});
    EXPECT_THAT(last, IsEmpty());
    happen(NodeLost{.node_id = "", .why = "x"});
    EXPECT_THAT(last, IsEmpty());
    EXPECT_FALSE(order_for(state, "nobody"));
}

TEST_F(Control, tags_are_added_replaced_and_deleted) {
    create("LLM");
    const std::string arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/llm";
    Reply reply = reply_to(AddTags{.request = "r", .arn = arn, .tags = {{"a", "1"}, {"b", "2"}}});
    EXPECT_EQ(reply.body.dump(), R"({"Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]})");
    reply_to(AddTags{.request = "r", .arn = arn, .tags = {{"a", "3"}}});
    EXPECT_THAT(job("LLM").tags, ElementsAre(::testing::Pair("a", "3"), ::testing::Pair("b", "2")));
    reply_to(DeleteTags{.request = "r", .arn = arn, .keys = {"a", "zzz"}});
    EXPECT_THAT(job("LLM").tags, ElementsAre(::testing::Pair("b", "2")));
    EXPECT_EQ(said<JobChanged>().size(), 1u);
    Tags many;
    for (int i = 0; i < 50; ++i) many.emplace_back(fmt::format("k{}", i), "");
    EXPECT_EQ(reply_to(AddTags{.request = "r", .arn = arn, .tags = many}).error,
              ErrorCode::invalid_argument);
    EXPECT_EQ(job("LLM").tags.size(), 1u);
    EXPECT_EQ(reply_to(DeleteTags{.request = "r", .arn = "arn:x", .keys = {"a"}}).error,
              ErrorCode::not_found);
}

TEST_F(Control, recovery_says_again_what_may_not_have_been_done) {
    create("waiting-to-launch", 1);
    create("running", 2);
    train("running");
    removes = false;
    lose("running", 2);
    create("queued", 4);
    const std::string launched = id("waiting-to-launch", 1);
    last = recover(state, now);
    ASSERT_EQ(said<LaunchNode>().size(), 1u);
    EXPECT_EQ(said<LaunchNode>()[0].node_id, launched);
    ASSERT_EQ(said<RemoveNode>().size(), 1u);
    EXPECT_EQ(said<RemoveNode>()[0].node_id, id("running", 2));
    ASSERT_EQ(said<OrderChanged>().size(), 1u);
    EXPECT_EQ(said<OrderChanged>()[0].node_id, id("running", 1));
}

TEST_F(Control, a_job_survives_being_stored_in_every_phase) {
    create("llm", 2);
    const auto stored = [&] {
        const Json json = job("llm").to_json();
        return Job::from_json(Json::parse(json.dump())).to_json() == json;
    };
    EXPECT_TRUE(stored());
    train("llm");
    EXPECT_TRUE(stored());
    lose("llm", 2, "killed");
    EXPECT_TRUE(stored());
    end_program("llm", 1, 1, "x", NodePhase::uploaded);
    EXPECT_TRUE(stored());
    leave("llm");
    EXPECT_EQ(job("llm").status, "Failed");
    EXPECT_TRUE(stored());
    Json other = job("llm").to_json();
    other.set("version", 99);
    EXPECT_THROW(Job::from_json(other), Error);
}

TEST(Inputs, survive_being_stored) {
    CreateJob create{.request = "r",
                     .spec = {},
                     .tags = {{"a", "b"}},
                     .credentials = {"ak", "sk", "st"},
                     .seed = "0123456789abcdef"};
    create.spec.name = "llm";
    const std::vector<Input> inputs = {
        create,
        StopJob{.request = "r", .name = "llm"},
        AddTags{.request = "r", .arn = "arn", .tags = {{"a", "b"}}},
        DeleteTags{.request = "r", .arn = "arn", .keys = {"a", "b"}},
        NodeReported{.report = {.node_id = "n", .phase = NodePhase::uploaded, .ended = true}},
        NodeLost{.node_id = "n", .why = "w"},
        NodeRemoved{.node_id = "n"},
        NodeStuck{.node_id = "n", .why = "w"},
        Tick{},
    };
    ASSERT_EQ(inputs.size(), std::variant_size_v<Input>);
    for (const Input& input : inputs) {
        const Input again = input_from_json(Json::parse(to_json(input).dump()));
        EXPECT_EQ(again.index(), input.index());
        EXPECT_EQ(to_json(again), to_json(input));
    }
    EXPECT_THROW(input_from_json(Json::parse(R"({"kind":"Dance"})")), Error);
}

}  // namespace
}  // namespace gruca::control
