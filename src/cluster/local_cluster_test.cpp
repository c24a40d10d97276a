// Agents here are shell scripts: what is tested is who runs, who is watched and what is left.

#include "cluster/local_cluster.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/queue.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "spec/node_directory.h"

namespace gruca::cluster {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kPatience{20};

class LocalClusterTest : public testing::Test {
  protected:
    void agents_run(const std::string& script) {
        write_file_atomic(scratch.path() / "agent", "#!/bin/sh\n" + script + "\n", {.mode = 0755});
    }
    std::unique_ptr<LocalCluster> open() {
        return std::make_unique<LocalCluster>(
            LocalClusterOptions{.agent_program = scratch.path() / "agent",
                                .nodes_dir = scratch.path() / "nodes"},
            [this](NodeGone node) { gone.push(std::move(node)); });
    }
    static spec::NodeConfig node(const std::string& id) {
        return {.node_id = id,
                .endpoint = "http://127.0.0.1:1",
                .region = "us-east-1",
                .access_key = "AKID",
                .secret_key = "secret",
                .work_dir = "",
                .store_uri = "file:///nowhere",
                .hidden_paths = {}};
    }
    fs::path directory(const std::string& id) const { return scratch.path() / "nodes" / id; }
    ProcessId agent_of(const std::string& id) const {
        return ProcessId::from_text(read_file(directory(id) / "agent.pid")).value();
    }
    NodeGone next_gone() {
        std::optional<NodeGone> node = gone.pop_for(kPatience);
        if (!node) throw Error(ErrorCode::deadline_exceeded, "no node is reported gone");
        return *node;
    }

    const TempDir scratch;
    Queue<NodeGone> gone{100};
};

TEST_F(LocalClusterTest, a_launched_agent_gets_its_config_in_a_file_only_its_owner_reads) {
    agents_run("exec sleep 1000");
    const auto cluster = open();
    cluster->launch(node("job-algo-1-abcdef"));
    const fs::path config = directory("job-algo-1-abcdef") / "config.json";
    EXPECT_EQ(fs::status(config).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    const auto read = spec::NodeConfig::from_json(Json::parse(read_file(config)));
    EXPECT_EQ(read.secret_key, "secret");
    EXPECT_EQ(read.work_dir, (directory("job-algo-1-abcdef") / "work").string());
    EXPECT_THAT(cluster->nodes(), ElementsAre("job-algo-1-abcdef"));
    EXPECT_EQ(::getsid(agent_of("job-algo-1-abcdef").pid), agent_of("job-algo-1-abcdef").pid);
    cluster->remove("job-algo-1-abcdef");
}

TEST_F(LocalClusterTest, a_second_launch_starts_no_second_agent) {
    agents_run("exec sleep 1000");
    const auto cluster = open();
    cluster->launch(node("n"));
    const ProcessId first = agent_of("n");
    cluster->launch(node("n"));
    EXPECT_EQ(agent_of("n"), first);
    EXPECT_TRUE(open_process(first).is_open());
    cluster->remove("n");
}

TEST_F(LocalClusterTest, a_killed_agent_and_one_that_exits_are_reported_with_the_reason) {
    agents_run("exec sleep 1000");
    const auto cluster = open();
    cluster->launch(node("killed"));
    ::kill(agent_of("killed").pid, SIGKILL);
    EXPECT_THAT(next_gone().why, HasSubstr("signal 9"));
    agents_run("exit 3");
    cluster->launch(node("left"));
    const NodeGone left = next_gone();
    EXPECT_EQ(left.node_id, "left");
    EXPECT_THAT(left.why, HasSubstr("3"));
}

TEST_F(LocalClusterTest, a_gone_node_is_reported_again_when_it_is_launched_again) {
    agents_run("exit 0");
    const auto cluster = open();
    cluster->launch(node("n"));
    next_gone();
    cluster->launch(node("n"));
    EXPECT_EQ(next_gone().node_id, "n");
}

TEST_F(LocalClusterTest, agents_outlive_their_cluster_and_the_next_one_watches_them) {
    agents_run("exec sleep 1000");
    open()->launch(node("n"));
    const ProcessId agent = agent_of("n");
    EXPECT_TRUE(open_process(agent).is_open());
    const auto next = open();
    EXPECT_THAT(next->nodes(), ElementsAre("n"));
    ::kill(agent.pid, SIGKILL);
    EXPECT_EQ(next_gone().node_id, "n");
}

TEST_F(LocalClusterTest, a_process_that_has_the_pid_of_a_former_agent_is_not_taken_for_it) {
    agents_run("exec sleep 1000");
    Subprocess stranger({.argv = {"sleep", "1000"}});
    ProcessId former = process_id_of(stranger.pid()).value();
    former.start -= 1;
    fs::create_directories(directory("n"));
    write_file_atomic(directory("n") / "agent.pid", former.to_text());
    const auto cluster = open();
    EXPECT_EQ(next_gone().node_id, "n");
    cluster->remove("n");
    EXPECT_FALSE(stranger.wait_for(std::chrono::milliseconds(0)));
}

TEST_F(LocalClusterTest, remove_ends_agent_and_keeper_and_leaves_nothing) {
    agents_run("exec sleep 1000");
    const auto cluster = open();
    cluster->launch(node("n"));
    const ProcessId agent = agent_of("n");
    const fs::path pid_file = directory("n") / "work" / "keeper.pid";
    Subprocess keeper({.argv = {"sleep", "3"}});
    write_file_atomic(pid_file, process_id_of(keeper.pid()).value().to_text());
    keeper.send_signal(SIGTERM);
    cluster->remove("n");
    EXPECT_FALSE(process_id_of(agent.pid));
    EXPECT_FALSE(process_id_of(keeper.pid()));
    EXPECT_FALSE(fs::exists(directory("n")));
    EXPECT_THAT(cluster->nodes(), IsEmpty());
    EXPECT_FALSE(gone.pop_for(std::chrono::milliseconds(0)));
}

TEST_F(LocalClusterTest, removing_an_unknown_node_is_fine_and_a_malformed_id_is_refused) {
    const auto cluster = open();
    EXPECT_NO_THROW(cluster->remove("never-there"));
    EXPECT_THROW(cluster->remove("../secrets"), Error);
    EXPECT_THROW(cluster->remove(""), Error);
}

TEST_F(LocalClusterTest, the_log_of_a_gone_node_can_be_found) {
    agents_run("echo line > \"$(dirname \"$2\")/work/log\"");
    const auto cluster = open();
    EXPECT_FALSE(cluster->left_log("n"));
    cluster->launch(node("n"));
    next_gone();
    ASSERT_TRUE(cluster->left_log("n"));
    EXPECT_EQ(read_file(*cluster->left_log("n")), "line\n");
    cluster->remove("n");
    EXPECT_FALSE(cluster->left_log("n"));
}

TEST_F(LocalClusterTest, an_agent_whose_cluster_died_as_it_started_it_gets_no_second_one) {
    agents_run(
        "sleep 0.3; cp \"$(dirname \"$2\")/late.pid\" \"$(dirname \"$2\")/agent.pid\"; "
        "exec sleep 1000");
    open()->launch(node("n"));
    const ProcessId first = agent_of("n");
    // As if the cluster had died before it wrote the pid: the agent does so itself, later.
    fs::rename(directory("n") / "agent.pid", directory("n") / "late.pid");
    const auto next = open();
    next->launch(node("n"));
    EXPECT_EQ(agent_of("n"), first);
    EXPECT_FALSE(gone.pop_for(std::chrono::milliseconds(0)));
    next->remove("n");
    EXPECT_FALSE(open_process(first).is_open());
}

TEST_F(LocalClusterTest, a_node_that_was_never_started_is_known_and_can_be_removed) {
    fs::create_directories(directory("n") / "work");
    const auto cluster = open();
    EXPECT_THAT(cluster->nodes(), ElementsAre("n"));
    cluster->remove("n");
    EXPECT_THAT(cluster->nodes(), IsEmpty());
}

TEST_F(LocalClusterTest, a_log_whose_keeper_was_killed_is_marked_once) {
    agents_run("exec sleep 1000");
    const auto cluster = open();
    cluster->launch(node("n"));
    const fs::path work = directory("n") / "work";
    write_file_atomic(work / "log", "half a li");
    Subprocess keeper({.argv = {"sleep", "1000"}});
    write_file_atomic(work / "keeper.pid", process_id_of(keeper.pid()).value().to_text());
    keeper.send_signal(SIGKILL);
    ::kill(agent_of("n").pid, SIGKILL);
    next_gone();
    const std::string marked = std::string("half a li") + spec::node_directory::kCutMark;
    EXPECT_EQ(read_file(*cluster->left_log("n")), marked);
    EXPECT_EQ(read_file(*cluster->left_log("n")), marked);
    cluster->remove("n");
}

TEST_F(LocalClusterTest, a_log_whose_keeper_said_how_it_ended_is_whole) {
    agents_run("exec sleep 1000");
    const auto cluster = open();
    cluster->launch(node("n"));
    const fs::path work = directory("n") / "work";
    write_file_atomic(work / "log", "a line\n");
    write_file_atomic(work / "keeper.pid", "1 1\n");
    write_file_atomic(work / "ending.json", "{}");
    ::kill(agent_of("n").pid, SIGKILL);
    next_gone();
    EXPECT_EQ(read_file(*cluster->left_log("n")), "a line\n");
    cluster->remove("n");
}

TEST_F(LocalClusterTest, a_keeper_that_says_that_it_hangs_is_not_waited_for) {
    agents_run("exec sleep 1000");
    const auto cluster = open();
    cluster->launch(node("n"));
    const fs::path work = directory("n") / "work";
    write_file_atomic(work / "log", "a line\n");
    Subprocess keeper({.argv = {"sleep", "60"}});
    write_file_atomic(work / "keeper.pid", process_id_of(keeper.pid()).value().to_text());
    std::jthread later([&work, agent = open_process(agent_of("n"))] {
        wait_for_end(agent, kPatience);  // The agent of a log that is left is killed.
        write_file_atomic(work / "ending.json", R"({"stuck": true})");
    });
    EXPECT_EQ(read_file(*cluster->left_log("n")), "a line\n");
    EXPECT_TRUE(process_id_of(keeper.pid())) << "it was waited for until it ended";
    keeper.send_signal(SIGKILL);
    keeper.wait();
    cluster->remove("n");
}

TEST_F(LocalClusterTest, an_absent_agent_program_is_an_error_that_names_it) {
    const auto cluster = open();
    try {
        cluster->launch(node("n"));
        FAIL() << "launched";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_THAT(error.message(), HasSubstr("agent"));
    }
}

}  // namespace
}  // namespace gruca::cluster
