// Whole nodes: an Agent with a service of the test, a store in a directory, and real programs.

#include "agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/fake_service.h"
#include "base/process_id.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "store/local_store.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using spec::NodePhase;
using spec::StopOrder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

bool namespaces_are_allowed(std::string& obstacle) {
    const TempDir scratch;
    write_file_atomic(scratch.path() / "hosts", "");
    try {
        Keeper keeper({.program = GRUCA_AGENT_PROGRAM, .work_dir = scratch.path()},
                      {.argv = {"true"},
                       .environment = {},
                       .hostname = "probe",
                       .hosts_file = (scratch.path() / "hosts").string(),
                       .binds = {},
                       .hidden_paths = {}});
        keeper.wait_for(std::chrono::seconds(30));
        return true;
    } catch (const Error& error) {
        if (error.code() != ErrorCode::unavailable) throw;
        obstacle = error.message();
        return false;
    }
}

// Goes an hour ahead of the clock by which a keeper says when its program ended.
class EarlyClock final : public Clock {
  public:
    TimePoint now() const override { return clock_.now() + std::chrono::hours(1); }
    std::chrono::steady_clock::time_point steady_now() const override {
        return clock_.steady_now();
    }

  private:
    const SystemClock clock_;
};

// One node of a job, with its agent in a thread.
class Node {
  public:
    Node(const fs::path& directory, store::ObjectStore& store, const Clock& clock)
        : directory_(directory),
          agent_({.config = {.node_id = "test-" + directory.filename().string(),
                             .endpoint = "http://127.0.0.1:9",
                             .region = "us-east-1",
                             .access_key = "node-key",
                             .secret_key = "node-secret",
                             .work_dir = (directory / "work").string(),
                             .store_uri = "file:///nowhere",
                             .hidden_paths = {directory.parent_path() / "store"}},
                  .program = GRUCA_AGENT_PROGRAM},
                 service, store, clock),
          thread_([this] { agent_.run(); }) {}
    ~Node() { release(); }

    void release() {
        service.order([](auto& order) { order.release = true; });
        if (thread_.joinable()) thread_.join();
    }
    void start(const spec::Task& task) {
        service.order([&](auto& order) { order.task = task; });
    }
    fs::path ml() const { return directory_ / "work" / "ml"; }

    FakeService service;

  private:
    const fs::path directory_;
    Agent agent_;
    std::jthread thread_;
};

class AgentTest : public testing::Test {
  protected:
    void SetUp() override {
        static std::string obstacle;
        static const bool allowed = namespaces_are_allowed(obstacle);
        if (!allowed) GTEST_SKIP() << obstacle;
    }
    std::unique_ptr<Node> node(const std::string& host) {
        fs::create_directories(scratch.path() / host);
        return std::make_unique<Node>(scratch.path() / host, store, clock);
    }
    static spec::Task task(const std::string& script, const std::string& host = "algo-1",
                           int hosts = 1) {
        spec::Task task;
        task.job_name = "job";
        task.job_arn = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job";
        task.region = "us-east-1";
        task.host = host;
        for (int i = 1; i <= hosts; ++i) {
            task.hosts.push_back("algo-" + std::to_string(i));
            task.addresses.push_back("127.64.0." + std::to_string(i));
        }
        task.instance_type = "ml.m5.large";
        task.image = "gruca/host";
        task.entrypoint = {"sh", "-c", script};
        task.output_uri = "s3://b/out/job/output";
        return task;
    }
    static spec::TaskChannel channel(const std::string& uri) {
        return {.name = "train",
                .s3_uri = uri,
                .input_mode = "File",
                .distribution = "FullyReplicated",
                .content_type = "",
                .record_wrapper = "None"};
    }
    std::string unpacked(const std::string& key) const {
        write_file_atomic(scratch.path() / "archive", store.get(key));
        return run({.argv = {"tar", "-xzOf", (scratch.path() / "archive").string()}}).output;
    }
    std::vector<std::string> keys() const {
        std::vector<std::string> result;
        store.for_each("", [&](const auto& object) { result.push_back(object.key); });
        return result;
    }

    const TempDir scratch;
    const SystemClock clock;
    store::LocalStore store{scratch.path() / "store"};
};

TEST_F(AgentTest, a_job_goes_from_its_data_to_its_model) {
    store.put("b/data/words", std::string_view("good day"));
    const auto one = node("algo-1");
    one->service.wait_for(NodePhase::ready);
    spec::Task job = task(
        "echo training; cp /opt/ml/input/data/train/words /opt/ml/model/; "
        "echo metrics > /opt/ml/output/data/metrics");
    job.channels = {channel("s3://b/data/")};
    one->start(job);
    const spec::NodeReport uploaded = one->service.wait_for(NodePhase::uploaded);
    EXPECT_TRUE(uploaded.ended);
    EXPECT_EQ(uploaded.exit_code, 0);
    EXPECT_EQ(uploaded.failure, "");
    EXPECT_EQ(one->service.log(), "training\n");
    EXPECT_EQ(one->service.log_size_at_last_report(), 9u);
    one->service.order([](auto& order) { order.assemble = true; });
    one->service.wait_for(NodePhase::assembled);
    EXPECT_EQ(unpacked("b/out/job/output/model.tar.gz"), "good day");
    EXPECT_EQ(unpacked("b/out/job/output/output.tar.gz"), "metrics\n");
}

TEST_F(AgentTest, two_nodes_give_one_model) {
    const auto one = node("algo-1"), two = node("algo-2");
    const std::string script = "echo $HOSTNAME > /opt/ml/model/$HOSTNAME; getent hosts algo-2";
    one->start(task(script, "algo-1", 2));
    two->start(task(script, "algo-2", 2));
    one->service.wait_for(NodePhase::uploaded);
    two->service.wait_for(NodePhase::uploaded);
    EXPECT_THAT(keys(), ElementsAre(".gruca/parts/job/algo-2/model.tar"));
    one->service.order([](auto& order) { order.assemble = true; });
    one->service.wait_for(NodePhase::assembled);
    EXPECT_EQ(unpacked("b/out/job/output/model.tar.gz"), "algo-1\nalgo-2\n");
    // The part goes when the service ends the job: until then this node may be lost.
    EXPECT_THAT(keys(),
                ElementsAre(".gruca/parts/job/algo-2/model.tar", "b/out/job/output/model.tar.gz"));
    EXPECT_THAT(one->service.log(), HasSubstr("127.64.0.2"));
}

TEST_F(AgentTest, a_node_that_the_service_has_forgotten_leaves_its_part_to_the_others) {
    const auto two = node("algo-2");
    two->start(task("echo 2 > /opt/ml/model/two", "algo-2", 2));
    two->service.wait_for(NodePhase::uploaded);
    two->service.order([](auto& order) { order.task.reset(); });
    two->release();
    EXPECT_THAT(keys(), ElementsAre(".gruca/parts/job/algo-2/model.tar"));
}

TEST_F(AgentTest, without_compression_outputs_are_plain_objects) {
    const auto one = node("algo-1");
    spec::Task job = task(
        "mkdir /opt/ml/model/a; echo 1 > /opt/ml/model/a/b; echo 2 > "
        "/opt/ml/output/data/c");
    job.compress_output = false;
    one->start(job);
    one->service.order([](auto& order) { order.assemble = true; });
    one->service.wait_for(NodePhase::assembled);
    EXPECT_THAT(keys(),
                ElementsAre("b/out/job/output/model/a/b", "b/out/job/output/output/data/c"));
}

TEST_F(AgentTest, a_failing_program_is_reported_in_its_own_words) {
    const auto one = node("algo-1");
    one->start(task("printf 'bad learning rate' > /opt/ml/output/failure; exit 3"));
    const spec::NodeReport report = one->service.wait_for(NodePhase::uploaded);
    EXPECT_EQ(report.exit_code, 3);
    EXPECT_EQ(report.failure, "bad learning rate");
    EXPECT_EQ(report.failure_kind, "AlgorithmError");
    EXPECT_THAT(keys(), IsEmpty());
}

TEST_F(AgentTest, without_words_of_its_own_the_last_lines_and_the_signal_are_said) {
    const auto one = node("algo-1");
    one->start(task("echo ValueError: shapes differ >&2; kill -SEGV $$"));
    const spec::NodeReport report = one->service.wait_for(NodePhase::uploaded);
    EXPECT_EQ(report.exit_signal, SIGSEGV);
    EXPECT_EQ(report.exit_code, 128 + SIGSEGV);
    EXPECT_THAT(report.failure, HasSubstr("ValueError: shapes differ"));
    EXPECT_THAT(report.failure, HasSubstr("Segmentation fault"));
    EXPECT_THAT(report.failure, HasSubstr("algo-1"));
}

TEST_F(AgentTest, a_failure_file_that_is_a_link_reveals_nothing) {
    write_file_atomic(scratch.path() / "secret", "the admin key");
    const auto one = node("algo-1");
    one->start(task("ln -s " + (scratch.path() / "secret").string() +
                    " /opt/ml/output/failure; rm -r /opt/ml/model; ln -s /etc /opt/ml/model; "
                    "exit 1"));
    EXPECT_THAT(one->service.wait_for(NodePhase::uploaded).failure, Not(HasSubstr("admin")));
}

TEST_F(AgentTest, a_model_that_is_a_link_out_of_the_tree_uploads_nothing_of_it) {
    const auto one = node("algo-1");
    one->start(
        task("rm -r /opt/ml/model; ln -s /etc /opt/ml/model; rm -r /opt/ml/output; "
             "ln -s / /opt/ml/output"));
    one->service.order([](auto& order) { order.assemble = true; });
    one->service.wait_for(NodePhase::assembled);
    EXPECT_EQ(unpacked("b/out/job/output/model.tar.gz"), "");
    EXPECT_THAT(keys(), ElementsAre("b/out/job/output/model.tar.gz"));
}

TEST_F(AgentTest, missing_data_a_missing_program_and_a_strange_image_are_the_requests_fault) {
    spec::Task no_data = task("true");
    no_data.channels = {channel("s3://b/nothing/")};
    spec::Task no_program = task("true");
    no_program.entrypoint = {"no-such-program"};
    spec::Task no_image = task("true");
    no_image.image = "somebody/else";
    const std::vector<std::pair<spec::Task, std::string>> cases = {
        {no_data, "s3://b/nothing/"}, {no_program, "no-such-program"}, {no_image, "somebody/else"}};
    int number = 0;
    for (const auto& [job, word] : cases) {
        const auto one = node("algo-" + std::to_string(++number));
        one->start(job);
        const auto report = one->service.wait_for([](const auto& heard) { return heard.given_up; });
        EXPECT_EQ(report.failure_kind, "ClientError");
        EXPECT_THAT(report.failure, HasSubstr(word));
        EXPECT_FALSE(report.ended);
    }
}

TEST_F(AgentTest, a_stop_lets_the_program_save_and_its_model_is_kept) {
    const auto one = node("algo-1");
    one->start(
        task("trap 'echo last > /opt/ml/model/weights; exit 0' TERM; echo up; "
             "while :; do sleep 0.01; done"));
    one->service.wait_for_log("up");
    one->service.order([](auto& order) { order.stop = StopOrder::stop; });
    const spec::NodeReport report = one->service.wait_for(NodePhase::uploaded);
    EXPECT_EQ(report.exit_code, 0);
    EXPECT_EQ(report.failure, "");
    one->service.order([](auto& order) { order.assemble = true; });
    one->service.wait_for(NodePhase::assembled);
    EXPECT_EQ(unpacked("b/out/job/output/model.tar.gz"), "last\n");
}

TEST_F(AgentTest, a_program_that_does_not_listen_is_killed_after_the_grace) {
    const auto one = node("algo-1");
    one->start(task("trap '' TERM; echo up; while :; do sleep 0.01; done"));
    one->service.wait_for_log("up");
    one->service.order([](auto& order) {
        order.stop = StopOrder::stop;
        order.stop_grace = std::chrono::seconds(0);
    });
    const spec::NodeReport report = one->service.wait_for(NodePhase::uploaded);
    EXPECT_EQ(report.exit_signal, SIGKILL);
    EXPECT_EQ(report.failure, "");
}

TEST_F(AgentTest, what_failed_before_the_stop_and_was_heard_of_after_it_says_why) {
    const EarlyClock early;
    fs::create_directories(scratch.path() / "algo-1");
    Node one(scratch.path() / "algo-1", store, early);
    one.start(
        task("trap 'echo ValueError: shapes differ; exit 3' TERM; echo up; "
             "while :; do sleep 0.01; done"));
    one.service.wait_for_log("up");
    one.service.order([](auto& order) { order.stop = StopOrder::stop; });
    const spec::NodeReport report = one.service.wait_for(NodePhase::uploaded);
    EXPECT_EQ(report.exit_code, 3);
    EXPECT_THAT(report.failure, HasSubstr("shapes differ"));
    EXPECT_EQ(report.failure_kind, "AlgorithmError");
}

TEST_F(AgentTest, a_stop_before_the_task_means_that_nothing_runs) {
    const auto one = node("algo-1");
    one->service.order([](auto& order) {
        order.task = task("echo never");
        order.stop = StopOrder::stop;
    });
    const spec::NodeReport report = one->service.wait_for(NodePhase::uploaded);
    EXPECT_FALSE(report.ended);
    EXPECT_EQ(one->service.log(), "");
}

TEST_F(AgentTest, a_job_goes_on_while_the_service_is_away_and_is_told_afterwards) {
    const auto one = node("algo-1");
    one->start(
        task("echo up; while ! test -e /opt/ml/go; do sleep 0.01; done; seq 1 1000; exit 5"));
    one->service.wait_for_log("up");
    one->service.set_away(true);
    write_file_atomic(one->ml() / "go", "");
    const fs::path ending = one->ml().parent_path() / kEndingFile;
    while (!fs::exists(ending)) ::usleep(2000);
    one->service.set_away(false);
    const spec::NodeReport report = one->service.wait_for(NodePhase::uploaded);
    EXPECT_EQ(report.exit_code, 5);
    EXPECT_THAT(one->service.log(), testing::EndsWith("\n999\n1000\n"));
}

TEST_F(AgentTest, release_in_the_middle_ends_everything) {
    auto one = node("algo-1");
    one->start(task("echo up; sleep 1000"));
    one->service.wait_for_log("up");
    const ProcessId keeper =
        ProcessId::from_text(read_file(one->ml().parent_path() / "keeper.pid")).value();
    one->release();
    EXPECT_FALSE(process_id_of(keeper.pid));
}

TEST_F(AgentTest, checkpoints_of_any_trainer_go_up_and_come_back) {
    spec::Task job = task(
        "cat /opt/ml/checkpoints/* 2>/dev/null; echo 7 > "
        "/opt/ml/checkpoints/state; ls /opt/ml/gruca/checkpoints; "
        "echo $GRUCA_CHECKPOINT_URI; echo own > /opt/ml/gruca/checkpoints/x");
    job.checkpoint = {.s3_uri = "s3://b/ckpt/run", .local_path = "/opt/ml/checkpoints"};
    {
        const auto one = node("algo-1");
        one->start(job);
        one->service.wait_for(NodePhase::uploaded);
        EXPECT_EQ(one->service.log(), "file:///opt/ml/gruca/checkpoints\n");
    }
    EXPECT_THAT(keys(), testing::Contains("b/ckpt/run/state"));
    const auto again = node("algo-2");
    again->start(job);
    again->service.wait_for(NodePhase::uploaded);
    EXPECT_THAT(again->service.log(), testing::StartsWith("7\n"));
}

}  // namespace
}  // namespace gruca::agent
