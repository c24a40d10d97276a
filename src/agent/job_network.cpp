#include "agent/job_network.h"

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "netlink/links.h"
#include "spec/subnet.h"

namespace gruca::agent {
namespace {

constexpr const char* kSystemdUpstream = "/run/systemd/resolve/resolv.conf";
constexpr const char* kNameServer = "nameserver";
constexpr const char* kMachineInterface = "lo";

std::string text_of_file(const char* path) {
    std::string text;
    run_guarded([&] { text = read_file(path); });
    return text;
}

bool names_a_server(const std::string& line) {
    return line.starts_with(kNameServer);
}

bool is_on_loopback(const std::string& server) {
    return server.starts_with("127.") || server == "::1";
}

std::string server_of(const std::string& line) {
    return std::string(trim(std::string_view(line).substr(std::string(kNameServer).size())));
}

struct Resolver {
    std::string text;
    bool has_server = false;
    bool has_loopback = false;
};

Resolver without_loopback(const std::string& text) {
    Resolver resolver;
    for (const std::string& line : split(text, '\n')) {
        if (names_a_server(line) && is_on_loopback(server_of(line))) {
            resolver.has_loopback = true;
            continue;
        }
        resolver.has_server = resolver.has_server || names_a_server(line);
        if (!line.empty()) resolver.text += line + "\n";
    }
    return resolver;
}

}  // namespace

const char* interface_of(const spec::Task& task) {
    const bool shared = spec::kLoopbackNodes.contains(task.addresses.at(0));
    return shared ? kMachineInterface : netlink::kNodeInterface;
}

std::optional<KeeperNetwork> network_of(const spec::Task& task,
                                        const std::optional<spec::NodeNetwork>& network) {
    std::string own;
    std::vector<std::string> peers;
    for (std::size_t i = 0; i < task.hosts.size(); ++i) {
        if (task.hosts[i] == task.host) {
            own = task.addresses.at(i);
        } else {
            peers.push_back(task.addresses.at(i));
        }
    }
    if (spec::kLoopbackNodes.contains(own)) {
        if (!task.isolated) return std::nullopt;
        throw Error(ErrorCode::unavailable,
                    "this machine runs jobs in its own network and cannot isolate one; see "
                    "--job-network of gruca-service");
    }
    const auto subnet = network ? spec::parse_subnet(network->subnet) : std::nullopt;
    if (!subnet || !subnet->contains(own)) {
        throw Error(ErrorCode::unavailable,
                    "the network of the jobs has changed since the job was given the address " +
                        own + "; create it again");
    }
    return KeeperNetwork{.bridge = task.isolated ? network->isolated_bridge : network->bridge,
                         .address = own,
                         .prefix = subnet->prefix,
                         .gateway = task.isolated ? "" : network->gateway,
                         .peers = task.isolated ? std::optional(peers) : std::nullopt};
}

std::string resolver_text(const std::string& machine, const std::string& upstream) {
    const Resolver own = without_loopback(machine);
    if (own.has_server || !own.has_loopback) return own.text;
    return without_loopback(upstream).text;
}

std::string resolver_text() {
    return resolver_text(text_of_file(kResolverFile), text_of_file(kSystemdUpstream));
}

void connect_node(const KeeperNetwork& network, pid_t pid) {
    netlink::Links().connect(network.bridge, spec::parse_address(network.address).value(), pid);
}

void enter_network(const KeeperNetwork& network) {
    const netlink::InterfaceAddress own{.address = spec::parse_address(network.address).value(),
                                        .prefix = network.prefix};
    const netlink::Links links;
    if (!network.peers) return links.set_up_node(own, spec::parse_address(network.gateway));
    std::vector<std::uint32_t> peers;
    for (const std::string& peer : *network.peers) {
        peers.push_back(spec::parse_address(peer).value());
    }
    links.set_up_isolated_node(own, peers);
}

}  // namespace gruca::agent
