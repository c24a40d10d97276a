#include "cluster/job_network.h"

#include <sched.h>

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/firewall.h"
#include "netlink/links.h"

namespace gruca::cluster {
namespace {

using testing::HasSubstr;

constexpr const char* kBridge = "gruca-000001";

NetworkFacts able(std::vector<spec::Subnet> used = {}) {
    return {.is_root = true, .may_administer = true, .own = {}, .used = std::move(used)};
}

spec::Subnet subnet(const char* text) {
    return spec::parse_subnet(text).value();
}

NetworkPlan plan(const std::string& setting, const NetworkFacts& facts, int slots = 4) {
    return plan_network(setting, slots, kBridge, facts);
}

TEST(NetworkPlan, what_the_machine_routes_elsewhere_is_left_alone) {
    const auto first = plan("auto", able());
    ASSERT_TRUE(first.subnet);
    const auto second = plan("auto", able({*first.subnet}));
    ASSERT_TRUE(second.subnet);
    EXPECT_FALSE(second.subnet->overlaps(*first.subnet));
    const auto third = plan("auto", able({subnet("198.18.0.0/15")}));
    EXPECT_TRUE(subnet("100.64.0.0/10").overlaps(*third.subnet));
    const auto none = plan("auto", able({subnet("198.18.0.0/15"), subnet("100.64.0.0/10")}));
    EXPECT_FALSE(none.subnet);
    EXPECT_THAT(none.why, HasSubstr("--job-network"));
}

TEST(NetworkPlan, services_choose_apart_and_each_the_same_again) {
    std::set<std::string> chosen;
    for (const char* directory : {"/srv/a", "/srv/b", "/srv/c", "/srv/d"}) {
        const std::string bridge = bridge_name(directory);
        EXPECT_EQ(bridge, bridge_name(directory));
        chosen.insert(plan_network("auto", 4, bridge, able()).subnet->text());
    }
    EXPECT_GT(chosen.size(), 1u);
}

TEST(NetworkPlan, a_bridge_that_is_there_keeps_its_subnet) {
    NetworkFacts facts = able({subnet("198.18.0.0/15"), subnet("100.64.0.0/10")});
    facts.own = subnet("198.18.64.0/18");
    EXPECT_EQ(plan("auto", facts).subnet, facts.own);
}

TEST(NetworkPlan, without_rights_jobs_share_the_network_unless_one_was_asked_for) {
    const NetworkFacts user{.is_root = false};
    EXPECT_FALSE(plan("auto", user).subnet);
    EXPECT_THAT(plan("auto", user).why, HasSubstr("root"));
    EXPECT_THAT(plan("auto", {.is_root = true}).why, HasSubstr("CAP_NET_ADMIN"));
    EXPECT_THROW(plan("10.77.0.0/16", user), Error);
    EXPECT_FALSE(plan("none", able()).subnet);
}

TEST(NetworkPlan, a_subnet_asked_for_is_checked) {
    EXPECT_EQ(plan("10.77.0.0/16", able()).subnet, subnet("10.77.0.0/16"));
    EXPECT_THROW(plan("10.77.0.0/16", able({subnet("10.0.0.0/8")})), Error);
    for (const char* wrong : {"", "yes", "10.77.0.1/16", "10.77.0.0/30", "0.0.0.0/0"}) {
        EXPECT_THROW(plan(wrong, able()), Error) << wrong;
    }
    EXPECT_TRUE(plan("10.77.0.0/29", able(), 5).subnet);
    EXPECT_THROW(plan("10.77.0.0/29", able(), 6), Error);
    EXPECT_TRUE(plan("auto", able(), 10'000).subnet);
}

class JobNetworkTest : public testing::Test {
  protected:
    void SetUp() override {
        if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no right to make a network namespace";
    }
};

TEST_F(JobNetworkTest, what_is_made_is_found_again_and_removed_without_a_trace) {
    const JobNetwork network(kBridge, subnet("10.77.0.0/24"));
    for (int i = 0; i < 2; ++i) network.make();
    EXPECT_EQ(look_at_network(kBridge).own, subnet("10.77.0.0/24"));
    EXPECT_TRUE(look_at_network("gruca-000002").own == std::nullopt);
    EXPECT_EQ(network.facts().gateway, "10.77.0.1");
    const netlink::Links links;
    EXPECT_TRUE(links.exists(network.facts().isolated_bridge));
    EXPECT_FALSE(links.address_of(network.facts().isolated_bridge));
    const bool out = network.open_way_out();
    EXPECT_EQ(has_way_out(kBridge), out);
    network.remove();
    network.remove();
    EXPECT_FALSE(links.exists(kBridge) || links.exists(network.facts().isolated_bridge));
    EXPECT_FALSE(has_way_out(kBridge));
}

}  // namespace
}  // namespace gruca::cluster
