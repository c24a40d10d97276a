#include "cluster/job_network.h"

#include <fmt/format.h>
#include <sys/capability.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/firewall.h"
#include "netlink/links.h"

namespace gruca::cluster {
namespace {

// Where a subnet is looked for: set aside for tests between networks, and for carriers.
constexpr std::array kRanges = {spec::Subnet{.base = 0xc6120000, .prefix = 15},   // 198.18.0.0
                                spec::Subnet{.base = 0x64400000, .prefix = 10}};  // 100.64.0.0
constexpr int kChosenPrefix = 18;
constexpr int kPrefixMin = 8;
constexpr int kPrefixMax = 29;

std::uint32_t hash_of(const std::string& text) {  // FNV-1a
    std::uint32_t hash = 2166136261u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

bool has_capability(cap_value_t capability) {
    const cap_t mine = ::cap_get_proc();
    cap_flag_value_t value = CAP_CLEAR;
    if (mine != nullptr) ::cap_get_flag(mine, capability, CAP_EFFECTIVE, &value);
    ::cap_free(mine);
    return value == CAP_SET;
}

bool is_free(const spec::Subnet& subnet, const std::vector<spec::Subnet>& used) {
    return std::none_of(used.begin(), used.end(),
                        [&](const spec::Subnet& other) { return other.overlaps(subnet); });
}

// The addresses .0 and .255 and the machine's own are not for nodes.
bool has_room(const spec::Subnet& subnet, int slots) {
    return subnet.size() - subnet.size() / 64 - 3 >= static_cast<std::uint64_t>(slots);
}

std::optional<spec::Subnet> choose(const std::string& bridge,
                                   const std::vector<spec::Subnet>& used) {
    std::vector<spec::Subnet> candidates;
    for (const spec::Subnet& range : kRanges) {
        spec::Subnet candidate{.base = range.base, .prefix = kChosenPrefix};
        for (; range.contains(candidate.base);
             candidate.base += static_cast<std::uint32_t>(candidate.size())) {
            candidates.push_back(candidate);
        }
    }
    const std::size_t first = hash_of(bridge) % candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const spec::Subnet& candidate = candidates[(first + i) % candidates.size()];
        if (is_free(candidate, used)) return candidate;
    }
    return std::nullopt;
}

spec::Subnet wanted_subnet(const std::string& setting, int slots) {
    const std::optional<spec::Subnet> subnet = spec::parse_subnet(setting);
    if (!subnet || subnet->prefix < kPrefixMin || subnet->prefix > kPrefixMax) {
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("--job-network must be auto, none, or a subnet from /{} to /{} such "
                        "as 10.77.0.0/16: {}",
                        kPrefixMin, kPrefixMax, setting));
    }
    if (!has_room(*subnet, slots)) {
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("--job-network has too few addresses for {} slots: {}", slots, setting));
    }
    return *subnet;
}

std::string why_not(const NetworkFacts& facts) {
    if (!facts.is_root) return "the service does not run as root";
    if (!facts.may_administer) {
        return "the service lacks CAP_NET_ADMIN or CAP_SYS_ADMIN; give its container both";
    }
    return "";
}

}  // namespace

std::string bridge_name(const std::filesystem::path& data_dir) {
    return fmt::format("gruca-{:06x}",
                       hash_of(std::filesystem::weakly_canonical(data_dir)) & 0xffffffu);
}

NetworkFacts look_at_network(const std::string& bridge) {
    NetworkFacts facts{
        .is_root = ::geteuid() == 0,
        .may_administer = has_capability(CAP_NET_ADMIN) && has_capability(CAP_SYS_ADMIN)};
    const netlink::Links links;
    facts.used = links.routes();
    if (const auto own = links.address_of(bridge)) {
        const std::uint32_t mask =
            ~static_cast<std::uint32_t>(spec::Subnet{.base = 0, .prefix = own->prefix}.size() - 1);
        facts.own = spec::Subnet{.base = own->address & mask, .prefix = own->prefix};
        std::erase_if(facts.used,
                      [&](const spec::Subnet& used) { return facts.own->contains(used.base); });
    }
    return facts;
}

NetworkPlan plan_network(const std::string& setting, int slots, const std::string& bridge,
                         const NetworkFacts& facts) {
    if (setting == kNetworkNone) return {.subnet = {}, .why = "--job-network is none"};
    const bool asked_for = setting != kNetworkAuto;
    const std::optional<spec::Subnet> wanted =
        asked_for ? std::optional(wanted_subnet(setting, slots)) : std::nullopt;
    const std::string obstacle = why_not(facts);
    if (asked_for && !obstacle.empty()) {
        throw Error(ErrorCode::invalid_argument, "--job-network cannot be had here: " + obstacle);
    }
    if (!obstacle.empty()) return {.subnet = {}, .why = obstacle};
    if (asked_for && !is_free(*wanted, facts.used)) {
        throw Error(ErrorCode::invalid_argument,
                    "--job-network is used on this machine already (see `ip route`): " + setting);
    }
    if (wanted) return {.subnet = wanted};
    if (facts.own && has_room(*facts.own, slots)) return {.subnet = facts.own};
    if (const auto chosen = choose(bridge, facts.used)) return {.subnet = chosen};
    return {.subnet = {},
            .why =
                "every subnet of 198.18.0.0/15 and 100.64.0.0/10 is routed somewhere; name a "
                "free one with --job-network"};
}

JobNetwork::JobNetwork(std::string bridge, const spec::Subnet& subnet)
    : bridge_(std::move(bridge)), subnet_(subnet) {}

void JobNetwork::make() const {
    const netlink::Links links;
    links.make_bridge(bridge_,
                      netlink::InterfaceAddress{.address = gateway(), .prefix = subnet_.prefix});
    links.make_bridge(isolated_bridge(), std::nullopt);
}

void JobNetwork::remove() const {
    const netlink::Links links;
    links.remove(bridge_);
    links.remove(isolated_bridge());
    close_way_out(bridge_);
}

bool JobNetwork::open_way_out() const {
    const std::optional<Error> failure =
        run_guarded([&] { cluster::open_way_out(bridge_, subnet_); });
    if (failure) log_warning("jobs cannot reach beyond this machine: {}", failure->message());
    for (const std::string& obstacle : firewall_obstacles(bridge_)) log_warning("{}", obstacle);
    return !failure;
}

spec::NodeNetwork JobNetwork::facts() const {
    return {.bridge = bridge_,
            .isolated_bridge = isolated_bridge(),
            .subnet = subnet_.text(),
            .gateway = spec::address_text(gateway()),
            .endpoint = ""};
}

std::unique_ptr<JobNetwork> open_job_network(const std::string& setting, int slots,
                                             const std::filesystem::path& data_dir) {
    const std::string bridge = bridge_name(data_dir);
    NetworkPlan plan = plan_network(setting, slots, bridge, look_at_network(bridge));
    std::unique_ptr<JobNetwork> network;
    if (plan.subnet) {
        network = std::make_unique<JobNetwork>(bridge, *plan.subnet);
        const std::optional<Error> failure = run_guarded([&] { network->make(); });
        if (failure && setting != kNetworkAuto) throw Error(*failure);
        if (failure) {
            plan.why = failure->message();
            network.reset();
        }
    }
    if (!network) {
        log_warning(
            "jobs share this machine's network, and two that use one port disturb each "
            "other: {}",
            plan.why);
        return nullptr;
    }
    network->open_way_out();
    log_info("jobs have the network {} on the bridge {}", plan.subnet->text(), bridge);
    return network;
}

}  // namespace gruca::cluster
