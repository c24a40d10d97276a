// What service and agent say to each other survives the wire.

#include "spec/node.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "spec/train_job.h"

namespace gruca::spec {
namespace {

Task a_task() {
    return {.job_name = "llm-1",
            .job_arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/llm-1",
            .region = "us-east-1",
            .host = "algo-2",
            .hosts = {"algo-1", "algo-2"},
            .addresses = {"127.64.0.1", "127.64.0.2"},
            .instance_type = "ml.c5.xlarge",
            .image = "gruca/host",
            .entrypoint = {"/bin/sh", "-c"},
            .arguments = {"echo \"\u00e9\""},
            .hyperparameters = Json::object({{"lr", "0.1"}}),
            .environment = Json::object({{"A", "b"}}),
            .channels = {{.name = "train",
                          .s3_uri = "s3://b/data/",
                          .input_mode = "File",
                          .distribution = "ShardedByS3Key",
                          .content_type = "text/plain",
                          .record_wrapper = "None"}},
            .output_uri = "s3://b/out/llm-1/output",
            .compress_output = false,
            .checkpoint = TaskCheckpoint{.s3_uri = "s3://b/ck", .local_path = "/opt/ml/ck"},
            .threads = 3,
            .job_access_key = "AK",
            .job_secret_key = "SK",
            .job_session_token = "ST"};
}

template <class Value>
Value over_the_wire(const Value& value) {
    return Value::from_json(Json::parse(value.to_json().dump()));
}

TEST(Node, an_order_survives_the_wire) {
    const NodeOrder order{.version = 7,
                          .task = a_task(),
                          .stop = StopOrder::kill,
                          .stop_grace = std::chrono::seconds(9),
                          .assemble = true,
                          .release = true};
    const NodeOrder again = over_the_wire(order);
    EXPECT_EQ(again.to_json(), order.to_json());
    EXPECT_EQ(again.task->channels.at(0).distribution, "ShardedByS3Key");
    EXPECT_EQ(again.task->checkpoint->local_path, "/opt/ml/ck");
    EXPECT_EQ(again.stop, StopOrder::kill);
    EXPECT_EQ(again.stop_grace, std::chrono::seconds(9));
    EXPECT_FALSE(over_the_wire(NodeOrder{}).task);
}

TEST(Node, a_report_survives_the_wire) {
    const NodeReport report{.node_id = "llm-1-algo-1-abcdef",
                            .phase = NodePhase::uploading,
                            .ended = true,
                            .exit_code = 137,
                            .exit_signal = 9,
                            .ended_at = time_from_ms(1767225600123),
                            .failure = "out of memory",
                            .failure_kind = "AlgorithmError",
                            .given_up = true};
    const NodeReport again = over_the_wire(report);
    EXPECT_EQ(again.to_json(), report.to_json());
    EXPECT_EQ(again.ended_at, report.ended_at);
    EXPECT_EQ(again.phase, NodePhase::uploading);
}

TEST(Node, a_config_survives_the_wire) {
    const NodeConfig config{.node_id = "n",
                            .endpoint = "http://127.0.0.1:1",
                            .region = "us-east-1",
                            .access_key = "AK",
                            .secret_key = "SK",
                            .work_dir = "/w",
                            .store_uri = "file:///s",
                            .hidden_paths = {"/a", "/b"},
                            .limits = {.memory_bytes = 1, .processes = 2}};
    EXPECT_EQ(over_the_wire(config).to_json(), config.to_json());
    EXPECT_EQ(over_the_wire(config).hidden_paths, config.hidden_paths);
    EXPECT_EQ(over_the_wire(config).limits, config.limits);
}

TEST(Node, every_phase_and_stop_order_is_known_by_its_name) {
    for (int i = 0; i <= static_cast<int>(NodePhase::assembled); ++i) {
        const auto phase = static_cast<NodePhase>(i);
        EXPECT_EQ(node_phase_from(name(phase)), phase);
    }
    for (int i = 0; i <= static_cast<int>(StopOrder::kill); ++i) {
        const auto stop = static_cast<StopOrder>(i);
        EXPECT_EQ(stop_order_from(name(stop)), stop);
    }
    EXPECT_THROW(node_phase_from("flying"), Error);
    EXPECT_THROW(stop_order_from("pause"), Error);
}

TEST(Node, a_number_that_does_not_fit_is_refused_and_not_cut) {
    for (const char* report : {R"({"node_id":"n","phase":"training","exit_code":4294967296})",
                               R"({"node_id":"n","phase":"training","exit_signal":-2147483649})"}) {
        EXPECT_THROW(NodeReport::from_json(Json::parse(report)), Error) << report;
    }
    for (const char* order :
         {R"({"version":1,"stop":"stop","stop_grace_s":-1})",
          R"({"version":1,"stop":"stop","stop_grace_s":9223372036854775807})"}) {
        EXPECT_THROW(NodeOrder::from_json(Json::parse(order)), Error) << order;
    }
}

TEST(Node, half_an_order_is_refused) {
    EXPECT_THROW(NodeOrder::from_json(Json::parse("{}")), Error);
    EXPECT_THROW(NodeReport::from_json(Json::parse(R"({"node_id":"a"})")), Error);
    EXPECT_THROW(Task::from_json(Json::parse(R"({"job_name":"a"})")), Error);
}

TEST(TrainJob, survives_being_stored) {
    const Task task = a_task();
    TrainJob job;
    job.name = "llm-1";
    job.arn = task.job_arn;
    job.image = task.image;
    job.entrypoint = task.entrypoint;
    job.arguments = task.arguments;
    job.channels = task.channels;
    job.hyperparameters = task.hyperparameters;
    job.environment = task.environment;
    job.output_path = "s3://b/out";
    job.compress_output = false;
    job.checkpoint = task.checkpoint;
    job.instance_type = "ml.c5.xlarge";
    job.instance_count = 2;
    job.max_runtime_s = 77;
    job.echo = Json::object({{"RoleArn", "r"}});
    EXPECT_EQ(over_the_wire(job).to_json(), job.to_json());
    EXPECT_EQ(job.artifacts_uri(), "s3://b/out/llm-1/output/model/");
    job.compress_output = true;
    job.checkpoint.reset();
    EXPECT_EQ(over_the_wire(job).to_json(), job.to_json());
    EXPECT_EQ(job.artifacts_uri(), "s3://b/out/llm-1/output/model.tar.gz");
}

}  // namespace
}  // namespace gruca::spec
