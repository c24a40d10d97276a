// What happens to jobs, told as the service and its nodes live through it.

#include "control/machine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gruca::control {
namespace {

using namespace std::chrono_literals;
using spec::NodePhase;
using spec::StopOrder;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// A service and its cluster, reduced to what they say to control. Removals are carried out at once.
class Control : public testing::Test {
  protected:
    Control() { state.settings = {.slots = 4, .cores = 8}; }

    Reply create(const std::string& name, int instances = 1, std::int64_t max_runtime_s = 3600) {
        CreateJob command{.request = "r", .spec = {}, .tags = {}, .credentials = {}, .seed = ""};
        command.spec.name = name;
        command.spec.arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/" + name;
        command.spec.instance_type = "ml.c5.xlarge";
        command.spec.instance_count = instances;
        command.spec.max_runtime_s = max_runtime_s;
        command.spec.output_path = "s3://b/out";
        command.seed = fmt::format("{:016x}", 0xabc0000000000000 + state.jobs.size());
        return reply_to(command);
    }
    Reply stop(const std::string& name) { return reply_to(StopJob{.request = "r", .name = name}); }

    void report(const std::string& job, int node, NodePhase phase) {
        happen(NodeReported{.report = {.node_id = id(job, node), .phase = phase}});
    }
    void report_all(const std::string& job, NodePhase phase) {
        for (int i = 1; i <= static_cast<int>(this->job(job).nodes.size()); ++i) {
            report(job, i, phase);
        }
    }
    void end_program(const std::string& job, int node, int exit_code = 0,
                     const std::string& failure = "", NodePhase phase = NodePhase::uploading) {
        happen(NodeReported{.report = {.node_id = id(job, node),
                                       .phase = phase,
                                       .ended = true,
                                       .exit_code = exit_code,
                                       .ended_at = now,
                                       .failure = failure}});
    }
    void give_up(const std::string& job, int node, const std::string& failure,
                 const std::string& kind) {
        happen(NodeReported{.report = {.node_id = id(job, node),
                                       .phase = this->node(job, node).report.phase,
                                       .failure = failure,
                                       .failure_kind = kind,
                                       .given_up = true}});
    }
    void lose(const std::string& job, int node, const std::string& why = "its agent died") {
        happen(NodeLost{.node_id = id(job, node), .why = why});
    }
    void train(const std::string& job) {
        report_all(job, NodePhase::ready);
        report_all(job, NodePhase::training);
    }
    // From training to the end, as agents that do nothing wrong.
    void run_to_end(const std::string& job) {
        const int count = static_cast<int>(this->job(job).nodes.size());
        train(job);
        for (int i = 1; i <= count; ++i) end_program(job, i);
        report_all(job, NodePhase::uploaded);
        report(job, 1, NodePhase::assembled);
        leave(job);
    }
    // The agents of released nodes end.
    void leave(const std::string& job) {
        for (std::size_t i = 1; i <= this->job(job).nodes.size(); ++i) {
            const int node = static_cast<int>(i);
            if (this->node(job, node).released) lose(job, node, "it exited");
        }
    }
    void wait(Duration time) {
        now += time;
        happen(Tick{});
    }

    void happen(const Input& input) {
        last.clear();
        std::vector<Output> outputs = step(state, input, now);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            last.push_back(outputs[i]);
            const auto* removed = std::get_if<RemoveNode>(&outputs[i]);
            if (removed == nullptr || !removes) continue;
            for (Output& more : step(state, NodeRemoved{.node_id = removed->node_id}, now)) {
                outputs.push_back(more);
            }
        }
    }
    Reply reply_to(const Input& input) {
        happen(input);
        for (const Output& output : last) {
            if (const auto* reply = std::get_if<Reply>(&output)) return *reply;
        }
        ADD_FAILURE() << "no reply";
        return {.request = "", .error = {}, .message = ""};
    }

    const Job& job(const std::string& name) const { return state.jobs.at(name); }
    const Node& node(const std::string& name, int index) const {
        return job(name).nodes.at(static_cast<std::size_t>(index - 1));
    }
    std::string id(const std::string& name, int index) const { return node(name, index).id; }
    std::vector<std::string> story(const std::string& name) const {
        std::vector<std::string> rows;
        for (const Transition& row : job(name).transitions) rows.push_back(row.status);
        return rows;
    }
    template <class What>
    std::vector<What> said() const {
        std::vector<What> found;
        for (const Output& output : last) {
            if (const auto* what = std::get_if<What>(&output)) found.push_back(*what);
        }
        return found;
    }

    State state;
    TimePoint now = time_from_ms(1'767'225'600'000);
    std::vector<Output> last;
    bool removes = true;
};

// ---- the ordinary life ------------------------------------------------------------------------

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

// ---- creation and the queue ---------------------------------------------------------------------

TEST_F(Control, a_name_is_used_once_even_by_a_job_that_is_over) {
    create("llm");
    EXPECT_EQ(create("llm").error, ErrorCode::already_exists);
    run_to_end("llm");
    const Reply reply = create("llm");
    EXPECT_EQ(reply.error, ErrorCode::already_exists);
    EXPECT_EQ(reply.message,
              "Training job names must be unique within an AWS account and region, and a training "
              "job with this name already exists "
              "(arn:aws:sagemaker:us-east-1:123456789012:training-job/llm)");
    EXPECT_THAT(said<JobChanged>(), IsEmpty());
}

TEST_F(Control, a_job_larger_than_the_service_is_refused) {
    create("one");
    const Reply reply = create("llm", 5);
    EXPECT_EQ(reply.error, ErrorCode::resource_exhausted);
    EXPECT_THAT(reply.message,
                StartsWith("The account-level service limit 'ml.c5.xlarge for training job usage' "
                           "is 4 Instances, with current utilization of 1 Instances and a request "
                           "delta of 5 Instances."));
    EXPECT_EQ(find_job(state, "llm"), nullptr);
}

TEST_F(Control, a_job_starts_whole_or_waits) {
    create("a", 3);
    create("b", 2);
    EXPECT_THAT(job("b").nodes, IsEmpty());
    EXPECT_EQ(job("b").transitions.back().message, "Training job waiting for capacity");
    create("c", 1);
    EXPECT_THAT(job("c").nodes, IsEmpty()) << "a small job passed a larger one";
    run_to_end("a");
    EXPECT_EQ(job("b").nodes.size(), 2u);
    EXPECT_EQ(job("c").nodes.size(), 1u);
    EXPECT_EQ(job("b").transitions.back().message, "Preparing the instances for training");
}

TEST_F(Control, slots_come_free_only_when_nothing_of_a_job_can_run) {
    create("a", 4);
    create("b", 4);
    train("a");
    stop("a");
    EXPECT_THAT(job("b").nodes, IsEmpty());
    report_all("a", NodePhase::uploaded);
    for (int i = 1; i <= 3; ++i) lose("a", i, "it exited");
    EXPECT_THAT(job("b").nodes, IsEmpty());
    removes = false;
    lose("a", 4, "it exited");
    EXPECT_EQ(job("a").status, "Stopping");
    EXPECT_THAT(job("b").nodes, IsEmpty());
    happen(NodeRemoved{.node_id = id("a", 4)});
    EXPECT_EQ(job("a").status, "Stopped");
    EXPECT_EQ(job("b").nodes.size(), 4u);
}

TEST_F(Control, a_service_with_fewer_slots_holds_back_only_what_cannot_run) {
    create("a", 4);
    create("large", 4);
    create("small", 1);
    state.settings.slots = 2;
    run_to_end("a");
    EXPECT_THAT(job("large").nodes, IsEmpty());
    EXPECT_THAT(job("large").transitions.back().message, HasSubstr("needs 4 instances"));
    EXPECT_EQ(job("small").nodes.size(), 1u);
    state.settings.slots = 8;
    wait(0s);
    EXPECT_EQ(job("large").nodes.size(), 4u);
}

TEST_F(Control, nodes_have_names_and_addresses_of_their_own) {
    create("a", 2);
    create("b-algo-1-x", 2);
    std::set<std::string> ids, addresses;
    for (const auto& [name, one] : state.jobs) {
        for (const Node& node : one.nodes) {
            EXPECT_THAT(node.id, StartsWith(name + "-" + node.host + "-abc000"));
            EXPECT_THAT(node.address, testing::MatchesRegex("127\\.64\\.[0-9]+\\.[0-9]+"));
            EXPECT_THAT(node.address,
                        testing::Not(testing::AnyOf(EndsWith(".0"), EndsWith(".255"))));
            ids.insert(node.id);
            addresses.insert(node.address);
            EXPECT_EQ(find_job_of_node(state, node.id), &one);
        }
    }
    EXPECT_EQ(ids.size(), 4u);
    EXPECT_EQ(addresses.size(), 4u);
}

TEST_F(Control, an_order_holds_all_that_a_node_must_know) {
    create("llm", 2);
    const auto order = order_for(state, id("llm", 2));
    ASSERT_TRUE(order && order->task);
    EXPECT_EQ(order->version, 1);
    EXPECT_EQ(order->task->host, "algo-2");
    EXPECT_EQ(order->task->region, "us-east-1");
    EXPECT_THAT(order->task->hosts, ElementsAre("algo-1", "algo-2"));
    EXPECT_THAT(order->task->addresses,
                ElementsAre(node("llm", 1).address, node("llm", 2).address));
    EXPECT_EQ(order->task->output_uri, "s3://b/out/llm/output");
    EXPECT_EQ(order->task->threads, 4);
    EXPECT_EQ(order->stop, StopOrder::none);
}

// ---- stopping -----------------------------------------------------------------------------------

TEST_F(Control, a_waiting_job_stops_at_once) {
    create("a", 4);
    create("b");
    EXPECT_FALSE(stop("b").error);
    EXPECT_EQ(job("b").status, "Stopped");
    EXPECT_EQ(job("b").ended, now);
    EXPECT_FALSE(job("b").training_started);
    EXPECT_THAT(story("b"), ElementsAre("Starting", "Pending", "Stopping", "Stopped"));
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
        EXPECT_THAT(story(name), testing::Not(testing::Contains("Uploading")));
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

// ---- time ---------------------------------------------------------------------------------------

TEST_F(Control, a_job_at_its_maximum_runtime_is_stopped_not_failed) {
    create("llm", 1, 60);
    now += 500s;  // Waiting for the machine does not count.
    train("llm");
    EXPECT_THAT(said<WakeAt>(), testing::Contains(testing::Field(&WakeAt::when, now + 60s)));
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

// ---- failure ------------------------------------------------------------------------------------

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

// ---- lost nodes ---------------------------------------------------------------------------------

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

// ---- tags ---------------------------------------------------------------------------------------

TEST_F(Control, tags_are_added_replaced_and_deleted) {
    create("LLM");
    const std::string arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/llm";
    Reply reply = reply_to(AddTags{.request = "r", .arn = arn, .tags = {{"a", "1"}, {"b", "2"}}});
    EXPECT_EQ(reply.body.dump(), R"({"Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]})");
    reply_to(AddTags{.request = "r", .arn = arn, .tags = {{"a", "3"}}});
    EXPECT_THAT(job("LLM").tags, ElementsAre(testing::Pair("a", "3"), testing::Pair("b", "2")));
    reply_to(DeleteTags{.request = "r", .arn = arn, .keys = {"a", "zzz"}});
    EXPECT_THAT(job("LLM").tags, ElementsAre(testing::Pair("b", "2")));
    EXPECT_EQ(said<JobChanged>().size(), 1u);
    Tags many;
    for (int i = 0; i < 50; ++i) many.emplace_back(fmt::format("k{}", i), "");
    EXPECT_EQ(reply_to(AddTags{.request = "r", .arn = arn, .tags = many}).error,
              ErrorCode::invalid_argument);
    EXPECT_EQ(job("LLM").tags.size(), 1u);
    EXPECT_EQ(reply_to(DeleteTags{.request = "r", .arn = "arn:x", .keys = {"a"}}).error,
              ErrorCode::not_found);
}

// ---- after a crash ------------------------------------------------------------------------------

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
