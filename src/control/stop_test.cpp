// Jobs that end before their program does: stopped by their user or by time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/lifecycle.h"
#include "control/testing.h"

namespace gruca::control {
namespace {

using namespace std::chrono_literals;
using control::testing::Control;
using spec::NodePhase;
using spec::StopOrder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Control, a_waiting_job_stops_at_once) {
    create("a", 4);
    create("b");
    EXPECT_FALSE(stop("b").error);
    EXPECT_EQ(job("b").status, "Stopped");
    EXPECT_EQ(job("b").ended, now);
    EXPECT_FALSE(job("b").training_started);
    EXPECT_THAT(story("b"), ElementsAre("Starting", "Pending", "Stopping", "Stopped"));
}

// A wake-up in the past would be followed by another one at once, and the loop would spin.
TEST_F(Control, a_deadline_that_has_passed_is_not_waited_for_again) {
    create("llm", 2);
    train("llm");
    end_program("llm", 1, 1, "it crashed");
    EXPECT_EQ(node("llm", 1).stop, StopOrder::kill);
    wait(kKillGrace + 1s);
    EXPECT_FALSE(job("llm").is_terminal());
    ASSERT_FALSE(said<WakeAt>().empty());
    for (const WakeAt& wake : said<WakeAt>()) EXPECT_GT(wake.when, now);
}

TEST_F(Control, a_running_job_stops_gracefully_and_keeps_its_model) {
    create("llm", 2);
    train("llm");
    EXPECT_FALSE(stop("llm").error);
    EXPECT_EQ(job("llm").status, "Stopping");
    EXPECT_EQ(said<OrderChanged>().size(), 2u);
    const auto order = order_for(state, id("llm", 1));
    EXPECT_EQ(order->stop, StopOrder::stop);
    EXPECT_EQ(order->stop_grace, 120s);
    EXPECT_EQ(order->version, 2);
    EXPECT_FALSE(stop("llm").error) << "a second stop while stopping is accepted";

    end_program("llm", 1, 143);
    end_program("llm", 2, 0);
    EXPECT_EQ(job("llm").secondary, "Uploading");
    EXPECT_EQ(job("llm").status, "Stopping");
    report_all("llm", NodePhase::uploaded);
    EXPECT_TRUE(node("llm", 1).assemble);
    report("llm", 1, NodePhase::assembled);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Stopped");
    EXPECT_THAT(story("llm"), ElementsAre("Starting", "Pending", "Downloading", "Training",
                                          "Stopping", "Uploading", "Stopped"));
}

TEST_F(Control, a_stop_before_the_program_begins_uploads_nothing) {
    for (const NodePhase phase : {NodePhase::launching, NodePhase::ready, NodePhase::downloading}) {
        const std::string name = std::string("early-") + spec::name(phase);
        create(name, 2);
        report_all(name, phase);
        stop(name);
        report_all(name, NodePhase::uploaded);
        EXPECT_FALSE(node(name, 1).assemble);
        leave(name);
        EXPECT_EQ(job(name).status, "Stopped");
        EXPECT_THAT(story(name), ::testing::Not(::testing::Contains("Uploading")));
    }
}

TEST_F(Control, a_stop_while_uploading_waits_for_the_upload) {
    create("llm");
    train("llm");
    end_program("llm", 1);
    stop("llm");
    EXPECT_EQ(job("llm").secondary, "Stopping");
    report("llm", 1, NodePhase::uploaded);
    report("llm", 1, NodePhase::assembled);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Stopped");
}

TEST_F(Control, a_stop_after_the_outcome_is_decided_changes_nothing) {
    create("llm");
    train("llm");
    end_program("llm", 1);
    report("llm", 1, NodePhase::uploaded);
    report("llm", 1, NodePhase::assembled);
    EXPECT_FALSE(stop("llm").error);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Completed");
    const Reply reply = stop("llm");
    EXPECT_EQ(reply.error, ErrorCode::precondition_failed);
    EXPECT_EQ(reply.message,
              "The request was rejected because the training job is in status Completed.");
    EXPECT_EQ(stop("nobody").error, ErrorCode::not_found);
}

TEST_F(Control, a_failure_under_a_stop_is_still_a_stop) {
    create("llm", 2);
    train("llm");
    stop("llm");
    end_program("llm", 1, 1, "KeyboardInterrupt");
    give_up("llm", 1, "cannot write to s3://b/out", "ClientError");
    end_program("llm", 2, 0);
    report("llm", 2, NodePhase::uploaded);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Stopped");
    EXPECT_THAT(job("llm").transitions.back().message, HasSubstr("node algo-1 could not finish"));
}

TEST_F(Control, a_stop_that_is_ignored_becomes_a_kill_and_then_a_removal) {
    create("llm");
    train("llm");
    stop("llm");
    wait(120s + kStopSlack - 1s);
    EXPECT_EQ(node("llm", 1).stop, StopOrder::stop);
    wait(1s);
    EXPECT_EQ(node("llm", 1).stop, StopOrder::kill);
    wait(kKillGrace);
    EXPECT_TRUE(node("llm", 1).released);
    EXPECT_EQ(job("llm").status, "Stopping");
    wait(kReleaseGrace);
    EXPECT_EQ(said<RemoveNode>().size(), 1u);
    EXPECT_EQ(job("llm").status, "Stopped");
}

TEST_F(Control, what_hangs_in_the_kernel_is_named_ends_no_later_and_keeps_its_slot) {
    removes = false;
    create("llm", 2);
    create("next", 4);
    train("llm");
    stop("llm");
    end_program("llm", 1, 137);
    end_program("llm", 2, 0);
    report_all("llm", NodePhase::uploaded);
    report("llm", 1, NodePhase::assembled);
    leave("llm");
    happen(NodeRemoved{.node_id = id("llm", 2)});
    const NodeStuck stuck{.node_id = id("llm", 1), .why = "process 7 (cat) hangs in the kernel"};
    happen(stuck);
    EXPECT_EQ(job("llm").status, "Stopping");
    EXPECT_THAT(job("llm").transitions.back().message,
                HasSubstr("algo-1 needs attention: process 7 (cat)"));
    wait(kStuckGrace - 1s);
    happen(stuck);  // Said again every time that it is tried.
    EXPECT_EQ(job("llm").status, "Stopping");
    wait(1s);
    EXPECT_EQ(job("llm").status, "Stopped");
    EXPECT_THAT(job("llm").transitions.back().message, HasSubstr("process 7 (cat)"));
    EXPECT_EQ(slots_used(state), 1);
    EXPECT_THAT(job("next").transitions.back().message,
                HasSubstr("1 of the 4 slots held by what remains of llm"));
    create("small", 3);
    EXPECT_THAT(story("small"), ElementsAre("Starting", "Pending"));

    const Json over = job("llm").to_json();
    wait(kRemoveRetry);
    EXPECT_EQ(said<RemoveNode>().size(), 1u) << "asked for also when the job is over";
    EXPECT_FALSE(said<WakeAt>().empty());
    happen(stuck);
    EXPECT_EQ(Job::from_json(over).nodes[0].stuck_why, stuck.why);
    int asked = 0;
    for (const Output& output : recover(state, now)) {
        asked += std::holds_alternative<RemoveNode>(output) ? 1 : 0;
    }
    EXPECT_EQ(asked, 1) << "after a restart too";
    happen(NodeRemoved{.node_id = id("llm", 1)});
    EXPECT_EQ(job("llm").status, "Stopped");
    EXPECT_EQ(slots_used(state), 4);
    EXPECT_EQ(said<LaunchNode>().size(), 4u);
}

TEST_F(Control, a_failed_job_and_a_completed_one_say_what_hangs) {
    removes = false;
    create("lost");
    train("lost");
    lose("lost", 1);
    happen(NodeStuck{.node_id = id("lost", 1), .why = "process 7 (cat) hangs in the kernel"});
    wait(kStuckGrace);
    EXPECT_EQ(job("lost").status, "Failed");
    EXPECT_THAT(job("lost").failure_reason, HasSubstr("its agent died"));
    EXPECT_THAT(job("lost").failure_reason, HasSubstr("process 7 (cat) hangs"));
    create("good");
    run_to_end("good");
    happen(NodeStuck{.node_id = id("good", 1), .why = "process 8 (cat) hangs in the kernel"});
    wait(kStuckGrace);
    EXPECT_EQ(job("good").status, "Completed");
    EXPECT_THAT(job("good").transitions.back().message, HasSubstr("process 8 (cat)"));
    EXPECT_EQ(job("good").failure_reason, "");
}

TEST_F(Control, a_job_at_its_maximum_runtime_is_stopped_not_failed) {
    create("llm", 1, 60);
    now += 500s;  // Waiting for the machine does not count.
    train("llm");
    EXPECT_THAT(said<WakeAt>(), ::testing::Contains(::testing::Field(&WakeAt::when, now + 60s)));
    wait(59s);
    EXPECT_EQ(job("llm").status, "InProgress");
    wait(1s);
    EXPECT_EQ(job("llm").status, "Stopping");
    EXPECT_EQ(node("llm", 1).stop_grace, 120s);
    end_program("llm", 1, 0);
    report("llm", 1, NodePhase::uploaded);
    report("llm", 1, NodePhase::assembled);
    leave("llm");
    EXPECT_EQ(job("llm").status, "Stopped");
    EXPECT_EQ(job("llm").secondary, "MaxRuntimeExceeded");
    EXPECT_EQ(job("llm").failure_reason, "");
}

TEST_F(Control, the_maximum_runtime_does_not_cut_an_upload_short) {
    create("llm", 1, 60);
    train("llm");
    end_program("llm", 1);
    wait(1000s);
    EXPECT_EQ(job("llm").status, "InProgress");
    EXPECT_EQ(node("llm", 1).stop, StopOrder::none);
}

}  // namespace
}  // namespace gruca::control
