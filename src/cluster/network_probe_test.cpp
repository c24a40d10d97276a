#include "cluster/network_probe.h"

#include <sched.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cluster/job_network.h"
#include "netlink/links.h"
#include "spec/subnet.h"

namespace gruca::cluster {
namespace {

using testing::HasSubstr;

// The machine is a network namespace here, too.
class NetworkProbeTest : public testing::Test {
  protected:
    void SetUp() override {
        if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no right to make a network namespace";
    }
};

TEST_F(NetworkProbeTest, what_a_service_would_make_is_told) {
    const Json network = probe_network("auto", 4, "/srv/gruca").at("network");
    EXPECT_EQ(network.get_string("why"), "");
    EXPECT_EQ(network.get_string("bridge"), bridge_name("/srv/gruca"));
    const auto subnet = spec::parse_subnet(network.get_string("subnet"));
    ASSERT_TRUE(subnet);
    EXPECT_TRUE(subnet->contains(network.get_string("gateway")));
}

TEST_F(NetworkProbeTest, what_was_tried_is_not_on_the_machine) {
    std::string bridge;
    std::thread([&] {  // Whose namespace is left behind.
        bridge = probe_network("auto", 4, "/srv/gruca").at("network").get_string("bridge");
    })
        .join();
    const netlink::Links links;
    EXPECT_FALSE(links.exists(bridge) || links.exists(netlink::kNodeInterface));
}

TEST_F(NetworkProbeTest, no_network_is_told_with_its_reason_and_without_addresses) {
    const Json none = probe_network("none", 4, "/srv/gruca").at("network");
    EXPECT_THAT(none.get_string("why"), HasSubstr("--job-network"));
    EXPECT_EQ(none.find("subnet"), nullptr);
    const Json wrong = probe_network("10.0.0.0/31", 4, "/srv/gruca").at("network");
    EXPECT_THAT(wrong.get_string("why"), HasSubstr("10.0.0.0/31"));
}

}  // namespace
}  // namespace gruca::cluster
