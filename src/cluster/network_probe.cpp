#include "cluster/network_probe.h"

#include <sched.h>
#include <unistd.h>

#include <optional>

#include "base/boundary.h"
#include "base/error.h"
#include "cluster/firewall.h"
#include "cluster/job_network.h"
#include "netlink/links.h"

namespace gruca::cluster {
namespace {

NetworkPlan plan_here(const std::string& setting, int slots, const std::string& bridge) {
    NetworkPlan plan;
    const std::optional<Error> failure =
        run_guarded([&] { plan = plan_network(setting, slots, bridge, look_at_network(bridge)); });
    if (failure) plan.why = failure->message();
    return plan;
}

// What a node needs, but that both ends of its pair stay here. Empty when it can be had.
std::string why_no_node(const std::string& bridge, const netlink::InterfaceAddress& gateway) {
    const netlink::InterfaceAddress node{.address = gateway.address + 1, .prefix = gateway.prefix};
    const std::optional<Error> failure = run_guarded([&] {
        if (::unshare(CLONE_NEWNET) != 0) throw_errno("cannot make a network namespace");
        const netlink::Links links;
        links.make_bridge(bridge, gateway);
        links.connect(bridge, node.address, ::gettid());
        links.set_up_node(node, std::nullopt);
    });
    return failure ? failure->message() : "";
}

std::string why_no_way_out(const std::string& bridge, const spec::Subnet& subnet) {
    const std::optional<Error> failure = run_guarded([&] { open_way_out(bridge, subnet); });
    return failure ? failure->message() : "";
}

}  // namespace

Json probe_network(const std::string& setting, int slots, const std::filesystem::path& data_dir) {
    const std::string bridge = bridge_name(data_dir);
    NetworkPlan plan = plan_here(setting, slots, bridge);
    Json firewall = Json::array();
    std::string way_out;
    if (plan.subnet) {
        for (const std::string& one : firewall_obstacles(bridge)) firewall.push(one);
        plan.why =
            why_no_node(bridge, {.address = plan.subnet->base + 1, .prefix = plan.subnet->prefix});
    }
    Json network = Json::object({{"bridge", bridge}, {"why", plan.why}});
    if (plan.why.empty()) {
        way_out = why_no_way_out(bridge, *plan.subnet);
        network.set("subnet", plan.subnet->text());
        network.set("gateway", spec::address_text(plan.subnet->base + 1));
    }
    network.set("way_out", way_out);
    network.set("firewall", std::move(firewall));
    return Json::object({{"network", std::move(network)}});
}

}  // namespace gruca::cluster
