// Who may start, when, and with which nodes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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
using ::testing::StartsWith;

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
            EXPECT_THAT(node.address, ::testing::MatchesRegex("127\\.64\\.[0-9]+\\.[0-9]+"));
            EXPECT_THAT(node.address,
                        ::testing::Not(::testing::AnyOf(EndsWith(".0"), EndsWith(".255"))));
            ids.insert(node.id);
            addresses.insert(node.address);
            EXPECT_EQ(find_job_of_node(state, node.id), &one);
        }
    }
    EXPECT_EQ(ids.size(), 4u);
    EXPECT_EQ(addresses.size(), 4u);
}

TEST_F(Control, addresses_come_from_the_subnet_and_leave_the_machine_its_own) {
    state.settings.addresses = spec::parse_subnet("10.9.8.248/29").value();
    create("a", 4);
    std::set<std::string> addresses;
    for (const Node& node : job("a").nodes) addresses.insert(node.address);
    EXPECT_THAT(addresses, ElementsAre("10.9.8.250", "10.9.8.251", "10.9.8.252", "10.9.8.253"));
}

TEST_F(Control, a_job_waits_for_addresses_as_it_does_for_slots) {
    state.settings.slots = 8;
    state.settings.addresses = spec::parse_subnet("10.9.8.0/29").value();  // Five for nodes.
    create("a", 5);
    create("b", 3);
    EXPECT_TRUE(job("b").nodes.empty());
    EXPECT_EQ(job("b").secondary, "Pending");
    run_to_end("a");
    EXPECT_EQ(job("b").nodes.size(), 3u);
}

TEST_F(Control, isolation_that_cannot_be_kept_is_refused_and_else_ordered) {
    CreateJob command{.request = "r", .spec = {}, .tags = {}, .credentials = {}, .seed = "abcdef"};
    command.spec.name = "alone";
    command.spec.isolated = true;
    EXPECT_EQ(reply_to(command).error, ErrorCode::invalid_argument);
    state.settings.isolates = true;
    EXPECT_FALSE(reply_to(command).error);
    EXPECT_TRUE(order_for(state, id("alone", 1))->task->isolated);
    create("open");
    EXPECT_FALSE(order_for(state, id("open", 1))->task->isolated);
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

}  // namespace
}  // namespace gruca::control
