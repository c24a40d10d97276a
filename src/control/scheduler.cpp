#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "control/lifecycle.h"

namespace gruca::control {
namespace {

// Addresses of nodes: 127.64.0.1 to 127.64.255.254, without those ending in .0 and .255.
constexpr std::int64_t kAddressesInThird = 254;
constexpr std::int64_t kAddresses = 256 * kAddressesInThird;
constexpr std::int64_t kAddressStride = 16;  // So that jobs in a row use other addresses.

constexpr std::size_t kNodeSeedDigits = 6;

std::string address_at(std::int64_t index) {
    return fmt::format("127.64.{}.{}", index / kAddressesInThird, index % kAddressesInThird + 1);
}

std::set<std::string> addresses_used(const State& state) {
    std::set<std::string> used;
    for (const auto& [name, job] : state.jobs) {
        if (job.is_terminal()) continue;
        for (const Node& node : job.nodes) used.insert(node.address);
    }
    return used;
}

std::vector<Node> nodes_for(const State& state, const Job& job, TimePoint now) {
    std::set<std::string> used = addresses_used(state);
    std::vector<Node> nodes;
    std::int64_t index = job.number * kAddressStride % kAddresses;
    for (int i = 1; i <= job.spec.instance_count; ++i) {
        CHECK(static_cast<std::int64_t>(used.size()) < kAddresses, "more nodes than addresses");
        while (!used.insert(address_at(index)).second) index = (index + 1) % kAddresses;
        Node node{.id = fmt::format("{}-algo-{}-{}", job.spec.name, i,
                                    job.seed.substr(0, kNodeSeedDigits)),
                  .host = fmt::format("algo-{}", i),
                  .address = address_at(index)};
        node.report.node_id = node.id;
        node.report.phase = spec::NodePhase::launching;
        node.ordered_at = now;
        nodes.push_back(std::move(node));
    }
    return nodes;
}

void start(Change& change, Job& job) {
    job.nodes = nodes_for(change.state, job, change.now);
    change.move(job, "InProgress", "Pending", "Preparing the instances for training");
    for (const Node& node : job.nodes) {
        change.emit(LaunchNode{.node_id = node.id, .job = job.spec.name, .host = node.host});
    }
}

}  // namespace

int slots_used(const State& state) {
    int used = 0;
    for (const auto& [name, job] : state.jobs) {
        if (!job.is_terminal() && !job.nodes.empty()) used += job.spec.instance_count;
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
    for (Job* job : waiting) {
        const int wanted = job->spec.instance_count;
        if (wanted > slots) {  // There were more slots when it was accepted; there may be again.
            change.move(*job, "InProgress", "Pending",
                        fmt::format("Training job waiting for capacity: it needs {} instances and "
                                    "there are {} slots",
                                    wanted, slots));
            continue;
        }
        held_up = held_up || wanted > free;
        if (held_up) {
            change.move(*job, "InProgress", "Pending", "Training job waiting for capacity");
        } else {
            free -= wanted;
            start(change, *job);
        }
    }
}

}  // namespace gruca::control
