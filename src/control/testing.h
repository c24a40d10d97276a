// control/testing.h
//
// For tests of control: a service and its nodes as verbs, so that a test reads as what happened.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "control/machine.h"

namespace gruca::control::testing {

using spec::NodePhase;
using namespace std::chrono_literals;

// A service and its cluster, reduced to what they say to control. Removals are carried out at once.
class Control : public ::testing::Test {
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

}  // namespace gruca::control::testing
