// What must hold after every step, and at the end.

#include <fmt/format.h>

#include "sim/world.h"

namespace gruca::sim {

using control::Job;
using control::Node;

namespace {

// What is fixed once a job is over: all but what still happens to nodes that did not end.
Json outcome_of(const Job& job) {
    Json json = job.to_json();
    json.set("nodes", Json());
    return json;
}

}  // namespace

void World::require(bool condition, const std::string& what) const {
    if (!condition) throw Broken(fmt::format("seed {}, at {}: {}", seed_, iso8601(now_), what));
}

void World::check() {
    int slots = 0;
    std::set<std::string> addresses;
    for (const auto& [name, job] : state_.jobs) {
        if (job.is_terminal()) {
            check_terminal(job);
            slots += job.nodes_left();
            for (const Node& node : job.nodes) {
                if (!node.gone) require(addresses.insert(node.address).second, "used twice");
            }
            continue;
        }
        check_row(job);
        if (!job.nodes.empty()) slots += job.spec.instance_count;
        for (const Node& node : job.nodes) {
            require(addresses.insert(node.address).second, "an address is used twice: " + node.id);
            std::int64_t& version = versions_[node.id];
            require(node.order_version >= version, "an order's version went back: " + node.id);
            version = node.order_version;
        }
    }
    require(slots <= state_.settings.slots, "more nodes than slots");
    int running = 0;
    for (const auto& [id, agent] : agents_) running += agent.running ? 1 : 0;
    require(running <= state_.settings.slots, "more runs than there are slots");
}

void World::check_row(const Job& job) const {
    const std::string& name = job.spec.name;
    const auto row = rows_.find(name);
    require(row != rows_.end() && row->second == job.to_json(),
            "a job changed and nobody was told: " + name);
    const auto& rows = job.transitions;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        require(rows[i - 1].end == rows[i].start && rows[i].start >= rows[i - 1].start,
                "rows of a job do not follow each other: " + name);
        require(rows[i - 1].message != rows[i].message, "a message is repeated: " + name);
    }
    require(job.secondary == rows.back().status, "the last row is not the status: " + name);
}

void World::check_terminal(const Job& job) {
    const std::string& name = job.spec.name;
    for (const Node& node : job.nodes) {
        require(node.gone || node.stuck_since,
                "a job is over and not all its nodes are gone: " + name);
        const auto agent = agents_.find(node.id);
        require(agent == agents_.end() || !agent->second.running,
                "a job is over and something of it runs: " + node.id);
    }
    require(job.ended && job.ended >= job.created && job.transitions.back().end.has_value(),
            "a job is over and has no end: " + name);
    require((job.status == "Failed") == !job.failure_reason.empty(),
            "a failure has no reason, or a reason no failure: " + name);
    const auto [kept, is_new] = terminal_.try_emplace(name);
    if (!is_new) {
        require(kept->second.at("status").as_string() == job.status,
                "a job that was over changed its status: " + name);
        return;
    }
    check_row(job);
    kept->second = outcome_of(job);
    ++census_[job.secondary];
    if (job.status != "Completed") return;
    for (const Node& node : job.nodes) {
        const Agent& agent = agents_.at(node.id);
        require(agent.programs_begun == 1 && agent.state.ended && agent.state.exit_code == 0,
                "a job completed and a program of it did not: " + node.id);
    }
    require(agents_.at(job.nodes.front().id).state.phase == spec::NodePhase::assembled,
            "a job completed without its archives: " + name);
}

void World::check_rest() const {
    std::set<std::string> ids;
    for (const auto& [name, row] : rows_) {
        const Job job = Job::from_json(row);
        require(!job.is_terminal() || terminal_.at(name) == outcome_of(job),
                "a job that was over changed: " + name);
        for (const Node& node : job.nodes) {
            require(ids.insert(node.id).second, "two nodes have one name: " + node.id);
        }
        require(job.nodes_left() == 0, "a node was never removed: " + name);
        require(job.is_terminal(), fmt::format("{} ended as {}, {}", name, job.status,
                                               job.transitions.back().message));
    }
    for (const auto& [id, agent] : agents_) {
        require(!agent.running, "a node was never removed: " + id);
        require(agent.programs_begun <= 1, "a program ran twice: " + id);
    }
}

// With all jobs in the state from the first input to the last.
void World::check_replay() const {
    control::State again;
    again.settings = state_.settings;
    for (const auto& [when, input] : inputs_) {
        control::step(again, control::input_from_json(input), when);
    }
    require(again.jobs.size() == rows_.size(), "replay gives other jobs");
    for (const auto& [name, row] : rows_) {
        require(again.jobs.at(name).to_json() == row, "replay gives another " + name);
    }
}

}  // namespace gruca::sim
