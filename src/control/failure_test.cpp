// Jobs that fail: whom the reason blames, and what becomes of the others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing.h"

namespace gruca::control {
namespace {

using namespace std::chrono_literals;
using control::testing::Control;
using spec::NodePhase;
using spec::StopOrder;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Control, one_node_that_fails_takes_the_job_with_it) {
    create("llm", 2);
    train("llm");
    end_program("llm", 2, 42, "loss is NaN at step 7");
    EXPECT_EQ(node("llm", 1).stop, StopOrder::stop);
    EXPECT_EQ(node("llm", 1).stop_grace, 10s);
    EXPECT_EQ(node("llm", 2).stop, StopOrder::kill) << "it would upload a model";
    const TimePoint failed = now;
    now += 2s;
    end_program("llm", 1, 1, "peer is gone");
    EXPECT_EQ(node("llm", 1).stop, StopOrder::kill);
    report_all("llm", NodePhase::uploaded);
    EXPECT_FALSE(node("llm", 1).assemble);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Failed");
    EXPECT_EQ(job("llm").failure_reason,
              "AlgorithmError: loss is NaN at step 7, exit code: 42, on algo-2");
    EXPECT_EQ(job("llm").ended, failed);
    EXPECT_THAT(story("llm"),
                ElementsAre("Starting", "Pending", "Downloading", "Training", "Failed"));
}

TEST_F(Control, the_first_to_fail_is_blamed_though_heard_of_last) {
    create("llm", 3);
    train("llm");
    const auto ended = [&](int node, int exit_code, Duration ago) {
        happen(NodeReported{.report = {.node_id = id("llm", node),
                                       .phase = NodePhase::uploaded,
                                       .ended = true,
                                       .exit_code = exit_code,
                                       .ended_at = now - ago,
                                       .failure = fmt::format("text of {}", node)}});
    };
    now += 10s;
    ended(1, 1, 100ms);
    now += 1s;
    ended(3, 9, 2s);      // Before algo-1.
    ended(2, 143, 10ms);  // After it was told to stop.
    leave("llm");
    EXPECT_EQ(job("llm").failure_reason, "AlgorithmError: text of 3, exit code: 9, on algo-3");
}

TEST_F(Control, a_node_that_gave_up_first_is_blamed_though_heard_of_last) {
    create("llm", 2);
    train("llm");
    now += 10s;
    const TimePoint killed = now - 100ms;
    end_program("llm", 1, 8, "rank 1 is gone");
    now += 1s;
    happen(NodeReported{.report = {.node_id = id("llm", 2),
                                   .phase = NodePhase::training,
                                   .failure = "the keeper was killed",
                                   .failure_kind = "InternalServerError",
                                   .given_up = true,
                                   .gave_up_at = killed}});
    report("llm", 1, NodePhase::uploaded);
    leave("llm");
    EXPECT_EQ(job("llm").failure_reason, "InternalServerError: the keeper was killed, on algo-2");
}

TEST_F(Control, a_stop_after_a_failure_is_accepted_and_the_job_still_fails) {
    create("llm", 2);
    train("llm");
    end_program("llm", 1, 1, "boom");
    EXPECT_FALSE(stop("llm").error);
    EXPECT_EQ(job("llm").cause, EndCause::node_failed);
    EXPECT_EQ(node("llm", 2).stop_grace, 10s);
    report_all("llm", NodePhase::uploaded);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Failed");
}

TEST_F(Control, a_node_removed_unasked_is_lost) {
    create("llm", 2);
    train("llm");
    happen(NodeRemoved{.node_id = id("llm", 2)});
    EXPECT_EQ(job("llm").cause, EndCause::node_lost);
    report("llm", 1, NodePhase::uploaded);
    leave("llm");
    EXPECT_EQ(job("llm").failure_reason,
              "InternalServerError: node algo-2 was lost: it was removed");
}

TEST_F(Control, a_job_of_more_nodes_than_cores_has_a_thread_a_node) {
    state.settings.cores = 2;
    create("llm", 4);
    EXPECT_EQ(order_for(state, id("llm", 3))->task->threads, 1);
}

TEST_F(Control, reasons_name_whose_fault_it_was) {
    struct Case {
        spec::NodeReport report;
        const char* reason;
    };
    const Case cases[] = {
        {{.node_id = "", .ended = true, .exit_code = 3, .failure = "boom"},
         "AlgorithmError: boom, exit code: 3"},
        {{.node_id = "", .ended = true, .exit_code = 1},
         "AlgorithmError: the program failed without saying why, exit code: 1"},
        {{.node_id = "", .ended = true, .exit_code = 137, .exit_signal = 9},
         "AlgorithmError: the program was ended by signal 9, exit code: 137"},
        {{.node_id = "",
          .failure = "no object at s3://b/data",
          .failure_kind = "ClientError",
          .given_up = true},
         "ClientError: no object at s3://b/data"},
        {{.node_id = "",
          .failure = "no disk",
          .failure_kind = "InternalServerError",
          .given_up = true},
         "InternalServerError: no disk"},
        {{.node_id = "",
          .ended = true,
          .exit_code = 0,
          .failure = "cannot upload",
          .failure_kind = "ClientError",
          .given_up = true},
         "ClientError: cannot upload, "},
    };
    int number = 0;
    for (Case one : cases) {
        const std::string name = fmt::format("job-{}", ++number);
        create(name);
        train(name);
        one.report.node_id = id(name, 1);
        one.report.phase = NodePhase::uploaded;
        one.report.ended_at = now;
        happen(NodeReported{.report = one.report});
        leave(name);
        EXPECT_EQ(job(name).status, "Failed");
        const std::string wanted = one.reason;
        EXPECT_EQ(job(name).failure_reason + (wanted.ends_with(", ") ? ", " : ""), wanted);
    }
}

TEST_F(Control, a_reason_is_cut_between_characters_and_keeps_its_exit_code) {
    create("llm", 2);
    train("llm");
    std::string text;
    while (text.size() < 3000) text += "\xE2\x82\xAC";  // Three bytes each.
    end_program("llm", 1, 7, text + "\xFF");
    report_all("llm", NodePhase::uploaded);
    leave("llm");
    const std::string reason = job("llm").failure_reason;
    EXPECT_LE(reason.size(), 1024u);
    EXPECT_GT(reason.size(), 1015u);
    EXPECT_THAT(reason, EndsWith("\xE2\x82\xAC, exit code: 7, on algo-1"));
    EXPECT_EQ(Json::parse(Json(reason).dump()).as_string(), reason);
}

TEST_F(Control, what_is_appended_to_a_reason_is_told_too_and_another_reason_is_not) {
    create("llm");
    train("llm");
    end_program("llm", 1, 3, "loss is NaN");
    give_up("llm", 1, "loss is NaN; Checkpoint upload failed: no space", "InternalServerError");
    give_up("llm", 1, "something quite different and longer than what was said at first",
            "ClientError");
    leave("llm");
    EXPECT_EQ(job("llm").failure_reason,
              "AlgorithmError: loss is NaN; Checkpoint upload failed: no space, exit code: 3");
}

TEST_F(Control, a_node_that_cannot_fetch_its_data_fails_the_job_before_it_trains) {
    create("llm", 2);
    report_all("llm", NodePhase::downloading);
    give_up("llm", 1, "no object at s3://b/data", "ClientError");
    EXPECT_EQ(node("llm", 2).stop, StopOrder::stop);
    report("llm", 2, NodePhase::uploaded);
    leave("llm");
    EXPECT_EQ(job("llm").failure_reason, "ClientError: no object at s3://b/data, on algo-1");
    EXPECT_THAT(story("llm"), ElementsAre("Starting", "Pending", "Downloading", "Failed"));
}

TEST_F(Control, a_lost_node_ends_the_job_and_is_named) {
    create("llm", 2);
    train("llm");
    removes = false;
    lose("llm", 2, "its agent was silent for 30 s");
    EXPECT_EQ(said<RemoveNode>().size(), 1u);
    EXPECT_EQ(node("llm", 1).stop, StopOrder::stop);
    EXPECT_FALSE(order_for(state, id("llm", 2)));
    report("llm", 2, NodePhase::uploaded);  // It was not dead after all, but has been given up.
    EXPECT_THAT(last, IsEmpty());
    end_program("llm", 1, 143);
    report("llm", 1, NodePhase::uploaded);
    lose("llm", 1, "it exited");
    happen(NodeRemoved{.node_id = id("llm", 1)});
    EXPECT_EQ(job("llm").status, "InProgress") << "something of algo-2 may still run";
    wait(kRemoveRetry);
    EXPECT_EQ(said<RemoveNode>().size(), 1u);
    happen(NodeRemoved{.node_id = id("llm", 2)});
    EXPECT_EQ(job("llm").status, "Failed");
    EXPECT_EQ(job("llm").failure_reason,
              "InternalServerError: node algo-2 was lost: its agent was silent for 30 s");
}

TEST_F(Control, a_failure_caused_by_a_loss_names_both_whichever_is_heard_first) {
    create("a", 2);
    train("a");
    end_program("a", 1, 1, "connection reset");
    lose("a", 2, "killed");
    report("a", 1, NodePhase::uploaded);
    leave("a");
    EXPECT_EQ(job("a").failure_reason,
              "AlgorithmError: connection reset, exit code: 1, on algo-1; "
              "node algo-2 was lost: killed");
    create("b", 2);
    train("b");
    const TimePoint before = now;
    now += 1s;
    lose("b", 2, "killed");
    happen(NodeReported{.report = {.node_id = id("b", 1),
                                   .phase = NodePhase::uploaded,
                                   .ended = true,
                                   .exit_code = 1,
                                   .ended_at = before,
                                   .failure = "connection reset"}});
    leave("b");
    EXPECT_EQ(job("b").failure_reason,
              "InternalServerError: node algo-2 was lost: killed; algo-1: connection reset");
}

TEST_F(Control, a_node_lost_after_its_part_is_safe_does_not_fail_the_job) {
    create("llm", 2);
    train("llm");
    end_program("llm", 1);
    end_program("llm", 2);
    report("llm", 2, NodePhase::uploaded);
    lose("llm", 2);
    EXPECT_EQ(job("llm").cause, EndCause::none);
    report("llm", 1, NodePhase::uploaded);
    EXPECT_TRUE(node("llm", 1).assemble);
    report("llm", 1, NodePhase::assembled);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Completed");
}

TEST_F(Control, algo_1_lost_before_the_archives_are_made_fails_the_job) {
    create("llm", 2);
    train("llm");
    end_program("llm", 1);
    end_program("llm", 2);
    report_all("llm", NodePhase::uploaded);
    lose("llm", 1, "killed");
    leave("llm");
    EXPECT_EQ(job("llm").failure_reason, "InternalServerError: node algo-1 was lost: killed");
}

TEST_F(Control, a_node_that_cannot_be_launched_fails_the_job) {
    create("llm");
    lose("llm", 1, "its agent cannot be started: no such file");
    EXPECT_EQ(job("llm").status, "Failed");
    EXPECT_FALSE(job("llm").training_started);
    EXPECT_THAT(job("llm").failure_reason, HasSubstr("cannot be started"));
}

TEST_F(Control, a_node_lost_while_stopping_leaves_the_job_stopped_and_says_so) {
    create("llm", 2);
    train("llm");
    stop("llm");
    lose("llm", 1, "killed");
    end_program("llm", 2);
    report("llm", 2, NodePhase::uploaded);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Stopped");
    EXPECT_EQ(job("llm").transitions.back().message,
              "Training job stopped; node algo-1 was lost: killed");
}

}  // namespace
}  // namespace gruca::control
