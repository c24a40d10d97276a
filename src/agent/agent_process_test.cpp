// The real program, gruca-agent, against a service behind real HTTP: signed calls, a service that
// goes away and comes back, and an agent that is killed.

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/fake_service.h"
#include "agent/keeper_order.h"
#include "base/boundary.h"
#include "base/file.h"
#include "base/process_id.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "net/http_server.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using spec::NodePhase;
using testing::EndsWith;
using testing::HasSubstr;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// What names a loader has one run before main().
bool names_a_loader(const fs::path& program) {
    const std::string bytes = read_file(program);
    Elf64_Ehdr head = {};
    std::memcpy(&head, bytes.data(), sizeof head);
    for (std::size_t i = 0; i < head.e_phnum; ++i) {
        Elf64_Phdr segment = {};
        std::memcpy(&segment, bytes.data() + head.e_phoff + i * head.e_phentsize, sizeof segment);
        if (segment.p_type == PT_INTERP) return true;
    }
    return false;
}

TEST(AgentProgram, loads_no_library_and_neither_does_the_keeper) {
    const fs::path agent = GRUCA_AGENT_PROGRAM;
    EXPECT_FALSE(names_a_loader(agent));
    EXPECT_FALSE(names_a_loader(agent.parent_path() / "gruca-keeper"));
    EXPECT_TRUE(names_a_loader("/proc/self/exe"));  // So the look is a look.
}
#endif

// The agent's side of the service's API, in front of a FakeService.
class HttpFront {
  public:
    explicit HttpFront(FakeService& service, std::uint16_t port = 0)
        : service_(service),
          server_({.port = port}, [this](net::HttpRequest request, net::HttpReply reply) {
              reply.send(answer(request));
          }) {}
    ~HttpFront() {
        polls_.request_stop();
        server_.stop();
    }
    std::uint16_t port() const { return server_.port(); }

  private:
    net::HttpResponse answer(const net::HttpRequest& request) {
        net::HttpResponse response;
        Json body = Json::object();
        const std::optional<Error> failure = run_guarded([&] { body = result_of(request); });
        if (failure) {
            response.status = http_status(failure->code());
            body =
                Json::object({{"__type", "ServiceUnavailable"}, {"message", failure->message()}});
        }
        response.body = body.dump();
        return response;
    }

    Json result_of(const net::HttpRequest& request) {
        const std::string authorization = request.headers.find("Authorization").value_or("");
        if (authorization.find("Credential=node-key/") == std::string::npos) {
            throw Error(ErrorCode::permission_denied, "not signed by the node");
        }
        const std::string target = request.headers.find("X-Amz-Target").value_or("");
        if (target == "Gruca.PollOrder") {
            const Json asked = Json::parse(request.body);
            return service_.poll(asked.at("seen_version").as_int(), polls_.get_token()).to_json();
        }
        if (target == "Gruca.ReportNode") {
            service_.report(spec::NodeReport::from_json(Json::parse(request.body)));
            return Json::object();
        }
        if (target != "Gruca.AppendLog") throw Error(ErrorCode::invalid_argument, target);
        const auto offset = parse_int(request.headers.find("x-gruca-offset").value_or(""));
        return Json::object(
            {{"size",
              service_.append_log(static_cast<std::uint64_t>(offset.value()), request.body)}});
    }

    FakeService& service_;
    std::stop_source polls_;
    net::HttpServer server_;
};

class AgentProcess : public testing::Test {
  protected:
    void start(const std::string& script) {
        front = std::make_unique<HttpFront>(service);
        const spec::NodeConfig config{
            .node_id = "test-" + scratch.path().filename().string(),
            .endpoint = "http://127.0.0.1:" + std::to_string(front->port()),
            .region = "us-east-1",
            .access_key = "node-key",
            .secret_key = "node-secret",
            .work_dir = (directory / "work").string(),
            .store_uri = "file://" + (scratch.path() / "store").string(),
            .hidden_paths = {(scratch.path() / "store").string()}};
        fs::create_directories(directory);
        write_file_atomic(directory / "config.json", config.to_json().dump(), {.mode = 0600});
        const UniqueFd log = open_file(directory / "agent.log", O_WRONLY | O_CREAT);
        agent = std::make_unique<Subprocess>(SpawnOptions{
            .argv = {GRUCA_AGENT_PROGRAM, "--config", (directory / "config.json").string()},
            .stdout_fd = log.get(),
            .stderr_fd = log.get(),
            .new_session = true});
        service.order([&](auto& order) { order.task = task(script); });
    }
    // What the cluster does when it removes a node.
    void TearDown() override {
        agent.reset();
        const fs::path work = directory / "work";
        if (!fs::exists(work / "keeper.pid")) return;
        const auto keeper = ProcessId::from_text(read_file(work / "keeper.pid"));
        EXPECT_TRUE(wait_for_end(open_process(keeper.value()), std::chrono::seconds(30)));
        for (const std::string& group : split(read_file(work / "cgroups"), '\n')) {
            ::rmdir(group.c_str());
        }
    }
    static spec::Task task(const std::string& script) {
        spec::Task task;
        task.job_name = "job";
        task.job_arn = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job";
        task.region = "us-east-1";
        task.host = "algo-1";
        task.hosts = {"algo-1"};
        task.addresses = {"127.64.0.1"};
        task.instance_type = "ml.m5.large";
        task.image = "gruca/host";
        task.entrypoint = {"sh", "-c", script};
        task.output_uri = "s3://b/out/job/output";
        return task;
    }
    // Skips the test where the agent said that this machine has no namespaces.
    bool is_possible() {
        const spec::NodeReport report = service.wait_for(
            [](const auto& heard) { return heard.phase >= NodePhase::training || heard.given_up; });
        return !report.given_up;
    }

    const TempDir scratch;
    const fs::path directory = scratch.path() / "node";
    FakeService service;
    std::unique_ptr<HttpFront> front;
    std::unique_ptr<Subprocess> agent;
};

TEST_F(AgentProcess, a_job_ends_while_the_service_is_down_and_is_told_to_the_next_one) {
    start("echo up; while ! test -e /opt/ml/go; do sleep 0.01; done; seq 1 3000");
    if (!is_possible()) GTEST_SKIP() << service.reports().back().failure;
    service.wait_for_log("up\n");
    const std::uint16_t port = front->port();
    front.reset();
    write_file_atomic(directory / "work" / "ml" / "go", "");
    while (!fs::exists(directory / "work" / kEndingFile)) ::usleep(2000);
    front = std::make_unique<HttpFront>(service, port);
    EXPECT_EQ(service.wait_for(NodePhase::uploaded).exit_code, 0);
    EXPECT_THAT(service.log(), EndsWith("\n2999\n3000\n"));
    service.order([](auto& order) { order.assemble = true; });
    service.wait_for(NodePhase::assembled);
    service.order([](auto& order) { order.release = true; });
    EXPECT_EQ(agent->wait_for(std::chrono::seconds(30)), ExitStatus());
}

TEST_F(AgentProcess, a_killed_agent_leaves_a_whole_log_and_nothing_that_runs) {
    start("seq 1 3000; touch /opt/ml/up; trap '' TERM; while :; do sleep 0.01; done");
    if (!is_possible()) GTEST_SKIP() << service.reports().back().failure;
    while (!fs::exists(directory / "work" / "ml" / "up")) ::usleep(2000);
    const UniqueFd keeper =
        open_process(ProcessId::from_text(read_file(directory / "work" / "keeper.pid")).value());
    agent->send_signal(SIGKILL);
    EXPECT_TRUE(wait_for_end(keeper, std::chrono::seconds(30)));
    EXPECT_THAT(read_file(directory / "work" / "log"), EndsWith("\n2999\n3000\n"));
}

TEST_F(AgentProcess, a_second_agent_of_one_node_refuses_to_start) {
    start("while :; do sleep 0.01; done");
    if (!is_possible()) GTEST_SKIP() << service.reports().back().failure;
    const RunResult second =
        run({.argv = {GRUCA_AGENT_PROGRAM, "--config", (directory / "config.json").string()}});
    EXPECT_FALSE(second.status.ok());
    EXPECT_THAT(second.output, HasSubstr("already"));
}

}  // namespace
}  // namespace gruca::agent
