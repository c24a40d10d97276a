// A node whose log cannot be saved holds up nobody but itself.

#include "service/node_keeper.h"

#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "service/service_fixture.h"
#include "store/memory_store.h"

namespace gruca::service {
namespace {

constexpr std::chrono::seconds kPatience{20};

std::size_t lane_of(const std::string& node_id) {
    return std::hash<std::string>()(node_id) % kNodeLanes;
}

class NodeKeeperTest : public ::testing::Test {
  protected:
    // A job of one node that shares a lane with `beside`, if any; returns the node's id.
    std::string add_job(const std::string& name, const std::string& beside = "") {
        std::string node = name + "-algo-1";
        while (!beside.empty() && lane_of(node) != lane_of(beside)) node += "x";
        control::Job job;
        job.spec.name = name;
        job.spec.arn = "arn:x/" + name;
        job.spec.instance_count = 1;
        job.status = job.secondary = "InProgress";
        job.nodes.push_back({.id = node, .host = "algo-1", .address = "127.64.0.1"});
        jobs.publish(job);
        write_file_atomic(scratch.path() / node, "the last words\n");
        nodes.set_left_log(node, (scratch.path() / node).string());
        return node;
    }
    // Its log's place is taken.
    void break_log(const std::string& job) const {
        std::filesystem::create_directories(scratch.path() / "logs");
        write_file_atomic(scratch.path() / "logs" / job, "");
    }
    void mend_log(const std::string& job) const {
        std::filesystem::remove(scratch.path() / "logs" / job);
    }
    std::string heard() { return events.pop_for(kPatience).value_or("nothing"); }

    const TempDir scratch;
    ManualClock clock{time_from_ms(1'800'000'000'000)};
    testing::FakeNodes nodes;
    Database database{{.path = scratch.path() / "state.db"}};
    JobBoard jobs{database};
    LogStore logs{scratch.path() / "logs"};
    store::MemoryStore store;
    Queue<std::string> events{100};
    NodeKeeper keeper{
        [this](NodeListener listener) { return nodes.view(std::move(listener)); },
        jobs,
        logs,
        store,
        clock,
        {.launched = [this](const auto& id) { events.push("launched " + id); },
         .lost = [this](const auto& gone) { events.push("lost " + gone.node_id); },
         .removed = [this](const auto& id) { events.push("removed " + id); },
         .stuck = [this](const auto& stuck) { events.push("stuck " + stuck.node_id); }}};
};

TEST_F(NodeKeeperTest, a_node_whose_log_cannot_be_saved_does_not_hold_up_another_one) {
    const std::string full = add_job("full");
    const std::string other = add_job("other", full);
    break_log("full");
    keeper.give_up({.node_id = full, .why = "it died"});
    keeper.give_up({.node_id = other, .why = "it died"});
    keeper.remove(other);
    EXPECT_EQ(heard(), "lost " + other);
    EXPECT_EQ(heard(), "removed " + other);
    mend_log("full");
    EXPECT_EQ(heard(), "lost " + full);
    EXPECT_EQ(read_file(scratch.path() / "logs/full/algo-1.log"), "the last words\n");
}

TEST_F(NodeKeeperTest, what_is_asked_of_a_node_waits_until_its_log_is_saved) {
    const std::string full = add_job("full");
    const std::string other = add_job("other", full);
    break_log("full");
    keeper.give_up({.node_id = full, .why = "it died"});
    keeper.remove(full);
    keeper.give_up({.node_id = full, .why = "it was silent"});
    keeper.remove(other);
    EXPECT_EQ(heard(), "removed " + other);
    mend_log("full");
    EXPECT_EQ(heard(), "lost " + full);
    EXPECT_EQ(heard(), "removed " + full);
    EXPECT_EQ(heard(), "lost " + full);
    keeper.remove(full);  // It is not held any more, or not for long.
    EXPECT_EQ(heard(), "removed " + full);
}

TEST_F(NodeKeeperTest, one_that_is_held_does_not_hold_up_the_end_of_the_service) {
    const std::string full = add_job("full");
    const std::string other = add_job("other", full);
    break_log("full");
    keeper.give_up({.node_id = full, .why = "it died"});
    keeper.remove(other);
    EXPECT_EQ(heard(), "removed " + other);
}

TEST(WorthTellingTest, what_fails_again_and_again_is_told_at_doubling_intervals) {
    std::vector<int> told;
    for (int failures = 1; failures <= 100; ++failures) {
        if (is_worth_telling(failures)) told.push_back(failures);
    }
    EXPECT_EQ(told, (std::vector<int>{1, 2, 4, 8, 16, 32, 64}));
}

}  // namespace
}  // namespace gruca::service
