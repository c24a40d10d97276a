#include "agent/job_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace gruca::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

spec::NodeNetwork a_network() {
    return {.bridge = "gruca-a",
            .isolated_bridge = "gruca-a-i",
            .subnet = "198.18.64.0/18",
            .gateway = "198.18.64.1",
            .endpoint = "http://198.18.64.1:7717"};
}

spec::Task task_at(const std::string& address, bool isolated = false) {
    spec::Task task;
    task.host = "algo-2";
    task.hosts = {"algo-1", "algo-2"};
    task.addresses = {"198.18.64.16", address};
    task.isolated = isolated;
    return task;
}

TEST(JobNetwork, a_node_of_the_jobs_network_has_a_way_to_the_machine) {
    const auto network = network_of(task_at("198.18.127.9"), a_network());
    ASSERT_TRUE(network);
    EXPECT_EQ(network->bridge, "gruca-a");
    EXPECT_EQ(network->address, "198.18.127.9");
    EXPECT_EQ(network->prefix, 18);
    EXPECT_EQ(network->gateway, "198.18.64.1");
    EXPECT_STREQ(interface_of(task_at("198.18.64.17")), "eth0");
}

TEST(JobNetwork, an_isolated_node_has_none) {
    const auto network = network_of(task_at("198.18.64.17", true), a_network());
    EXPECT_EQ(network->bridge, "gruca-a-i");
    EXPECT_THAT(network->gateway, IsEmpty());
    ASSERT_TRUE(network->peers);
    EXPECT_THAT(*network->peers, ElementsAre("198.18.64.16"));
    EXPECT_THAT(*KeeperNetwork::from_json(network->to_json()).peers, ElementsAre("198.18.64.16"));
    EXPECT_FALSE(network_of(task_at("198.18.64.17"), a_network())->peers);
}

TEST(JobNetwork, a_loopback_address_means_the_machines_network_whatever_the_service_has) {
    spec::Task task = task_at("127.64.0.17");
    task.addresses[0] = "127.64.0.16";
    EXPECT_FALSE(network_of(task, std::nullopt));
    EXPECT_FALSE(network_of(task, a_network()));
    EXPECT_STREQ(interface_of(task), "lo");
}

TEST(JobNetwork, isolation_is_refused_where_it_cannot_be_kept) {
    EXPECT_THROW(network_of(task_at("127.64.0.17", true), std::nullopt), Error);
    EXPECT_THROW(network_of(task_at("127.64.0.17", true), a_network()), Error);
}

TEST(JobNetwork, an_address_of_another_network_is_refused_and_named) {
    for (const auto& network : {std::optional<spec::NodeNetwork>(), std::optional(a_network())}) {
        try {
            network_of(task_at("10.0.0.9"), network);
            FAIL() << "connected to a network that is not there";
        } catch (const Error& error) {
            EXPECT_THAT(error.message(), HasSubstr("10.0.0.9"));
        }
    }
}

TEST(Resolver, servers_on_the_machines_loopback_give_way_to_those_they_ask) {
    const std::string upstream =
        "# upstream\nnameserver 10.0.0.2\nnameserver 127.0.0.1\nsearch a.b\n";
    EXPECT_EQ(resolver_text("nameserver 127.0.0.53\noptions edns0\n", upstream),
              "# upstream\nnameserver 10.0.0.2\nsearch a.b\n");
    EXPECT_EQ(resolver_text("nameserver ::1\n", ""), "");
}

TEST(Resolver, servers_elsewhere_are_kept_and_only_the_loopback_is_left_out) {
    EXPECT_EQ(
        resolver_text("search a\nnameserver 127.0.0.1\nnameserver 9.9.9.9\n", "nameserver 1.1.1.1"),
        "search a\nnameserver 9.9.9.9\n");
    EXPECT_EQ(resolver_text("search only\n", "nameserver 1.1.1.1"), "search only\n");
}

}  // namespace
}  // namespace gruca::agent
