#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "control/lifecycle.h"

namespace gruca::control {
namespace {

constexpr std::uint64_t kAddressStride = 16;  // So that jobs in a row use other addresses.

constexpr std::size_t kNodeSeedDigits = 6;

// The first address of a subnet is the machine's; some programs take .0 and .255 amiss anywhere.
bool is_for_nodes(const spec::Subnet& subnet, std::uint32_t address) {
    const std::uint32_t last_byte = address & 255u;
    return address > subnet.base + 1 && address < subnet.last() && last_byte != 0 &&
           last_byte != 255;
}

// From the one at `start` on, round the subnet. Nothing: every one is used.
std::optional<std::string> free_address(const spec::Subnet& subnet, std::uint64_t start,
                                        const std::set<std::string>& used) {
    for (std::uint64_t i = 0; i < subnet.size(); ++i) {
        const auto address = static_cast<std::uint32_t>(subnet.base + (start + i) % subnet.size());
        if (!is_for_nodes(subnet, address)) continue;
        std::string text = spec::address_text(address);
        if (!used.contains(text)) return text;
    }
    return std::nullopt;
}

std::set<std::string> addresses_used(const State& state) {
    std::set<std::string> used;
    for (const auto& [name, job] : state.jobs) {
        for (const Node& node : job.nodes) {
            if (!job.is_terminal() || !node.gone) used.insert(node.address);
        }
    }
    return used;
}

// Nothing when there are not enough addresses.
std::vector<Node> nodes_for(const State& state, const Job& job, TimePoint now) {
    std::set<std::string> used = addresses_used(state);
    std::vector<Node> nodes;
    const std::uint64_t start = static_cast<std::uint64_t>(job.number) * kAddressStride;
    for (int i = 1; i <= job.spec.instance_count; ++i) {
        const auto address = free_address(state.settings.addresses, start, used);
        if (!address) return {};
        used.insert(*address);
        Node node{.id = fmt::format("{}-algo-{}-{}", job.spec.name, i,
                                    job.seed.substr(0, kNodeSeedDigits)),
                  .host = fmt::format("algo-{}", i),
                  .address = *address};
        node.report.node_id = node.id;
        node.report.phase = spec::NodePhase::launching;
        node.ordered_at = now;
        nodes.push_back(std::move(node));
    }
    return nodes;
}

bool start(Change& change, Job& job) {
    job.nodes = nodes_for(change.state, job, change.now);
    if (job.nodes.empty()) return false;
    change.move(job, "InProgress", "Pending", "Preparing the instances for training");
    for (const Node& node : job.nodes) {
        change.emit(LaunchNode{.node_id = node.id, .job = job.spec.name, .host = node.host});
    }
    return true;
}

// What a waiting job should know of slots that nobody uses and nobody gets.
std::string held_by_remains(const State& state) {
    std::string text;
    for (const auto& [name, job] : state.jobs) {
        if (!job.is_terminal() || job.nodes_left() == 0) continue;
        text += fmt::format("; {} of the {} slots held by what remains of {}, which is over",
                            job.nodes_left(), state.settings.slots, name);
    }
    return text;
}

}  // namespace

int slots_used(const State& state) {
    int used = 0;
    for (const auto& [name, job] : state.jobs) {
        if (job.is_terminal()) {
            used += job.nodes_left();
        } else if (!job.nodes.empty()) {
            used += job.spec.instance_count;
        }
    }
    return used;
}

void schedule(Change& change) {
    std::vector<Job*> waiting;
    for (auto& [name, job] : change.state.jobs) {
        if (!job.is_terminal() && job.nodes.empty()) waiting.push_back(&job);
    }
    std::sort(waiting.begin(), waiting.end(),
              [](const Job* a, const Job* b) { return a->number < b->number; });
    const int slots = change.state.settings.slots;
    int free = slots - slots_used(change.state);
    bool held_up = false;
    const std::string remains = waiting.empty() ? "" : held_by_remains(change.state);
    for (Job* job : waiting) {
        const int wanted = job->spec.instance_count;
        if (wanted > slots) {  // There were more slots when it was accepted; there may be again.
            change.move(*job, "InProgress", "Pending",
                        fmt::format("Training job waiting for capacity: it needs {} instances and "
                                    "there are {} slots",
                                    wanted, slots));
            continue;
        }
        held_up = held_up || wanted > free || !start(change, *job);
        if (held_up) {
            change.move(*job, "InProgress", "Pending",
                        "Training job waiting for capacity" + remains);
        } else {
            free -= wanted;
        }
    }
}

}  // namespace gruca::control
