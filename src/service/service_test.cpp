// The whole service in one process over loopback HTTP: jobs from creation to end, with the service
// or a node dying in between.

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/boundary.h"
#include "base/queue.h"
#include "base/text.h"
#include "service/held_file.h"
#include "service/service_fixture.h"
#include "store/local_store.h"

namespace gruca::service {
namespace {

using spec::NodePhase;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::RunningService;

std::vector<std::string> statuses(const Json& job) {
    std::vector<std::string> found;
    for (const Json& row : job.at("SecondaryStatusTransitions").as_array()) {
        found.push_back(row.at("Status").as_string());
    }
    return found;
}

TEST(ServiceTest, a_job_runs_from_its_creation_to_its_completion) {
    RunningService running;
    EXPECT_EQ(running.create("job").at("TrainingJobArn").as_string(),
              "arn:aws:sagemaker:us-east-1:000000000000:training-job/job");
    const spec::NodeConfig node = running.nodes.launched("job-algo-1");
    EXPECT_EQ(node.endpoint, running.service->endpoint());
    EXPECT_THAT(node.hidden_paths, Contains((running.scratch.path() / "data").string()));

    const spec::NodeOrder order = running.poll(node, 0);
    ASSERT_TRUE(order.task);
    EXPECT_EQ(order.task->host, "algo-1");
    EXPECT_EQ(order.task->threads, 4);
    running.report(node, NodePhase::ready);
    EXPECT_EQ(running.append(node, 0, "hello\n"), 6);
    running.clock.advance(std::chrono::seconds(90));
    running.report(node, NodePhase::training);
    EXPECT_EQ(running.describe("job").at("SecondaryStatus").as_string(), "Training");
    running.run_to_the_end(node);

    const Json job = running.ended("job");
    EXPECT_EQ(job.at("TrainingJobStatus").as_string(), "Completed");
    EXPECT_EQ(job.at("BillableTimeInSeconds").as_int(), 90);
    EXPECT_EQ(job.at("ModelArtifacts").at("S3ModelArtifacts").as_string(),
              "s3://bucket/out/job/output/model.tar.gz");
    EXPECT_EQ(job.at("CreationTime"), Json(1'800'000'000.123));
    EXPECT_EQ(statuses(job).front(), "Starting");
    EXPECT_EQ(statuses(job).back(), "Completed");
    EXPECT_FALSE(job.find("FailureReason"));
    EXPECT_TRUE(running.nodes.await_removal(node.node_id));
}

TEST(ServiceTest, a_poll_waits_and_hears_of_a_newer_order_at_once) {
    RunningService running;
    running.create("job");
    const spec::NodeConfig node = running.nodes.launched("job-algo-1");
    const std::int64_t seen = running.poll(node, 0).version;
    running.report(node, NodePhase::training);
    spec::NodeOrder heard;
    std::jthread poller([&] { heard = running.poll(node, seen); });
    running.admin->call("SageMaker.StopTrainingJob", Json::object({{"TrainingJobName", "job"}}));
    poller.join();  // The clock stands still, so only the new order can have answered it.
    EXPECT_EQ(heard.stop, spec::StopOrder::stop);
    EXPECT_GT(heard.version, seen);
}

TEST(ServiceTest, a_poll_that_nothing_answers_ends_after_its_time) {
    RunningService running;
    running.create("job");
    const spec::NodeConfig node = running.nodes.launched("job-algo-1");
    const std::int64_t seen = running.poll(node, 0).version;
    spec::NodeOrder heard;
    std::atomic<bool> done = false;
    std::jthread poller([&] {
        heard = running.poll(node, seen);
        done = true;
    });
    while (!done) {  // The poll may not have arrived yet when the clock moves.
        running.clock.advance(std::chrono::seconds(1));
        running.report(node, NodePhase::ready);  // Alive all the while.
        running.service->core().nudge();
    }
    poller.join();
    EXPECT_EQ(heard.version, seen);
}

TEST(ServiceTest, a_job_outlives_the_service) {
    RunningService running;
    running.create("job");
    const spec::NodeConfig node = running.nodes.launched("job-algo-1");
    running.report(node, NodePhase::training);
    running.append(node, 0, "before\n");
    running.restart();
    EXPECT_EQ(running.describe("job").at("SecondaryStatus").as_string(), "Training");
    EXPECT_EQ(running.append(node, 0, "before\nafter\n"), 13);
    running.run_to_the_end(node);
    EXPECT_EQ(running.ended("job").at("TrainingJobStatus").as_string(), "Completed");
}

TEST(ServiceTest, a_launch_that_was_decided_and_not_made_is_made_at_the_next_start) {
    RunningService running;
    running.create("job");
    const spec::NodeConfig first = running.nodes.launched("job-algo-1");
    running.restart();  // Nothing was ever heard of the node.
    const spec::NodeConfig second = running.nodes.launched("job-algo-1", 2);
    EXPECT_EQ(second.node_id, first.node_id);
    EXPECT_EQ(second.secret_key, first.secret_key);
    running.run_to_the_end(second);
    EXPECT_EQ(running.ended("job").at("TrainingJobStatus").as_string(), "Completed");
}

TEST(ServiceTest, a_node_that_cannot_be_started_fails_the_job_and_says_why) {
    RunningService running;
    running.nodes.refuse_launches(true);
    running.create("job");
    const Json job = running.ended("job");
    EXPECT_EQ(job.at("TrainingJobStatus").as_string(), "Failed");
    EXPECT_THAT(job.at("FailureReason").as_string(), HasSubstr("no process can be started"));
}

TEST(ServiceTest, a_silent_node_is_given_up_and_its_log_saved) {
    RunningService running;
    running.create("job");
    const spec::NodeConfig node = running.nodes.launched("job-algo-1");
    running.report(node, NodePhase::training);
    running.append(node, 0, "sent\n");
    write_file_atomic(running.scratch.path() / "left", "sent\nnever sent\n");
    running.nodes.set_left_log(node.node_id, (running.scratch.path() / "left").string());
    running.clock.advance(std::chrono::seconds(29));
    running.service->core().nudge();
    EXPECT_EQ(running.describe("job").at("TrainingJobStatus").as_string(), "InProgress");
    running.clock.advance(std::chrono::seconds(2));
    running.service->core().nudge();
    const Json job = running.ended("job");
    EXPECT_EQ(job.at("TrainingJobStatus").as_string(), "Failed");
    EXPECT_THAT(job.at("FailureReason").as_string(), HasSubstr("algo-1"));
    EXPECT_EQ(read_file(running.scratch.path() / "data/logs/job/algo-1.log"), "sent\nnever sent\n");
    EXPECT_TRUE(running.nodes.await_removal(node.node_id));
}

TEST(ServiceTest, a_disk_that_does_not_take_logs_leaves_threads_for_everything_else) {
    constexpr int kNodes = 4, kCalls = 12;  // More than the service has threads.
    RunningService running;
    running.create("job", kNodes);
    std::vector<spec::NodeConfig> node;
    std::vector<std::unique_ptr<testing::HeldFile>> held;
    for (int i = 0; i < kNodes; ++i) {
        const std::string host = "algo-" + std::to_string(i + 1);
        node.push_back(running.nodes.launched("job-" + host));
        running.report(node.back(), NodePhase::training);
        running.append(node.back(), 0, "first\n");
        held.push_back(std::make_unique<testing::HeldFile>(running.scratch.path() /
                                                           "data/logs/job" / (host + ".log")));
    }
    if (!held.front()->is_held()) GTEST_SKIP() << "this file system has no leases";
    Queue<ErrorCode> refusals(kCalls);
    std::vector<std::jthread> calls;
    for (int i = 0; i < kCalls; ++i) {
        calls.emplace_back([&, i] {
            const auto refusal =
                run_guarded([&] { running.append(node[i % kNodes], 6, "second\n"); });
            if (refusal) refusals.push(refusal->code());
        });
    }
    for (int i = 0; i < kCalls - kLogAppendsMax; ++i) {
        EXPECT_EQ(refusals.pop_for(std::chrono::seconds(20)), ErrorCode::unavailable);
    }
    EXPECT_EQ(running.describe("job").at("TrainingJobStatus").as_string(), "InProgress");
    held.clear();
    calls.clear();
    for (int i = 0; i < kNodes; ++i) EXPECT_EQ(running.append(node[i], 6, "second\n"), 13);
}

TEST(ServiceTest, parts_that_nobody_merges_go_with_the_last_node) {
    RunningService running;
    running.create("job", 2);
    store::LocalStore store(running.scratch.path() / "data/store");
    const spec::NodeConfig one = running.nodes.launched("job-algo-1");
    const spec::NodeConfig two = running.nodes.launched("job-algo-2");
    for (const spec::NodePhase phase : {NodePhase::training, NodePhase::uploaded}) {
        running.report(one, phase);
        running.report(two, phase);
    }
    store.put(".gruca/parts/job/algo-2/model.tar", std::string_view("of the second"));
    store.put(".gruca/parts/job-2/algo-2/model.tar", std::string_view("of another job"));
    const std::string unfinished = running.scratch.path() / "data/store/%2Egruca.d/parts.d/job.d";
    std::filesystem::create_directories(unfinished + "/algo-1.d");  // Nothing was put there.
    running.nodes.end(two.node_id);  // Its part is safe: the first may merge it still.
    EXPECT_TRUE(running.nodes.await_removal(two.node_id));
    EXPECT_TRUE(store.find(".gruca/parts/job/algo-2/model.tar"));
    running.nodes.end(one.node_id);
    EXPECT_EQ(running.ended("job").at("TrainingJobStatus").as_string(), "Failed");
    EXPECT_FALSE(store.find(".gruca/parts/job/algo-2/model.tar"));
    EXPECT_FALSE(std::filesystem::exists(unfinished));
    EXPECT_TRUE(store.find(".gruca/parts/job-2/algo-2/model.tar"));
}

TEST(ServiceTest, a_free_port_that_was_taken_once_is_taken_again) {
    RunningService running;  // Its port is 0.
    const std::string first = running.service->endpoint();
    running.restart();
    EXPECT_EQ(running.service->endpoint(), first);
    running.stop();
    const auto port = parse_int(trim(read_file(running.scratch.path() / "data/port"))).value();
    net::HttpServerOptions listen;
    listen.port = static_cast<std::uint16_t>(port);
    const net::HttpServer other(listen, [](const net::HttpRequest&, const net::HttpReply&) {});
    running.start();
    EXPECT_NE(running.service->endpoint(), first);
}

TEST(ServiceTest, after_a_start_every_node_has_its_time_anew) {
    RunningService running;
    running.create("job");
    const spec::NodeConfig node = running.nodes.launched("job-algo-1");
    running.report(node, NodePhase::training);
    running.stop();
    running.clock.advance(std::chrono::seconds(300));
    running.start();
    running.service->core().nudge();
    running.clock.advance(std::chrono::seconds(20));
    running.report(node, NodePhase::training);
    EXPECT_EQ(running.describe("job").at("TrainingJobStatus").as_string(), "InProgress");
}

TEST(ServiceTest, a_key_dies_with_what_it_was_for) {
    RunningService running;
    running.create("job");
    const spec::NodeConfig node = running.nodes.launched("job-algo-1");
    const spec::NodeOrder order = running.poll(node, 0);
    const net::Credentials credentials{.access_key = order.task->job_access_key,
                                       .secret_key = order.task->job_secret_key,
                                       .session_token = order.task->job_session_token};
    const Json request = Json::object({{"TrainingJobName", "job"}});
    EXPECT_NO_THROW(running.client(credentials)->call("SageMaker.DescribeTrainingJob", request));
    running.run_to_the_end(node);
    running.ended("job");
    for (const auto& client : {running.client(credentials), running.client_of(node)}) {
        try {
            client->call("SageMaker.DescribeTrainingJob", request);
            ADD_FAILURE() << "a key of something that ended was accepted";
        } catch (const Error& error) {
            EXPECT_THAT(error.message(), HasSubstr("UnrecognizedClientException"));
        }
    }
}

TEST(ServiceTest, nodes_that_no_job_knows_are_removed_at_the_start) {
    RunningService running;
    running.stop();
    spec::NodeConfig stranger;
    stranger.node_id = "stranger-algo-1-000000";
    running.nodes.view([](const cluster::NodeGone&) {})->launch(stranger);
    running.start();
    EXPECT_TRUE(running.nodes.await_removal(stranger.node_id));
}

}  // namespace
}  // namespace gruca::service
