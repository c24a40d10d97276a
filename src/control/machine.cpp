#include "control/machine.h"

#include <algorithm>

#include "base/text.h"
#include "control/change.h"
#include "control/lifecycle.h"
#include "control/requests.h"

namespace gruca::control {
namespace {

// "<job>-algo-<n>-<hex>" -> "<job>"; a job's own name may hold "-algo-" too.
std::string job_name_of(const std::string& node_id) {
    const std::size_t at = node_id.rfind("-algo-");
    return at == std::string::npos ? "" : node_id.substr(0, at);
}

struct Place {
    Job* job = nullptr;
    Node* node = nullptr;
};

// A node that is not gone.
std::optional<Place> remains_of(State& state, const std::string& node_id) {
    const auto found = state.jobs.find(job_name_of(node_id));
    if (found == state.jobs.end()) return std::nullopt;
    for (Node& node : found->second.nodes) {
        if (node.id == node_id && !node.gone) return Place{.job = &found->second, .node = &node};
    }
    return std::nullopt;
}

// A node that something can still happen to.
std::optional<Place> place_of(State& state, const std::string& node_id) {
    const auto place = remains_of(state, node_id);
    return place && !place->job->is_terminal() ? place : std::nullopt;
}

void handle(Change& change, const NodeReported& input) {
    const auto place = place_of(change.state, input.report.node_id);
    if (!place || !is_live(*place->node)) return;
    if (!merge(*place->node, input.report, change.now)) return;
    change.changed(*place->job);
    advance(change, *place->job);
}

void handle(Change& change, const NodeLost& input) {
    const auto place = place_of(change.state, input.node_id);
    if (!place || !is_live(*place->node)) return;
    Node& node = *place->node;
    node.left = node.released;
    node.lost = !node.released;
    if (node.lost) node.lost_why = repair_utf8(input.why);
    node.ordered_at = change.now;
    change.changed(*place->job);
    change.emit(RemoveNode{.node_id = node.id});
    advance(change, *place->job);
}

void handle(Change& change, const NodeRemoved& input) {
    const auto place = remains_of(change.state, input.node_id);
    if (!place) return;
    Node& node = *place->node;
    if (is_live(node) && !node.released) {  // Nobody asked for it; it is lost all the same.
        node.lost = true;
        node.lost_why = "it was removed";
    }
    node.gone = true;
    change.changed(*place->job);
    change.reschedule = change.reschedule || place->job->is_terminal();
    advance(change, *place->job);
}

void handle(Change& change, const NodeStuck& input) {
    const auto place = place_of(change.state, input.node_id);
    if (!place) return;
    place->node->stuck_why = repair_utf8(input.why);
    if (!place->node->stuck_since) place->node->stuck_since = change.now;
    change.changed(*place->job);
    advance(change, *place->job);
}

void handle(Change& change, const Tick&) {
    for (auto& [name, job] : change.state.jobs) {
        if (job.is_settled()) continue;
        advance(change, job);
        if (const auto deadline = next_deadline(job, change.now))
            change.emit(WakeAt{.when = *deadline});
    }
    change.reschedule = true;  // There may be more slots than before a restart.
}

std::string region_of(const std::string& arn) {
    const auto parts = split(arn, ':');
    return parts.size() > 3 ? parts[3] : "";
}

spec::Task task_of(const Settings& settings, const Job& job, const Node& node) {
    spec::Task task{.job_name = job.spec.name,
                    .job_arn = job.spec.arn,
                    .region = region_of(job.spec.arn),
                    .host = node.host,
                    .hosts = {},
                    .addresses = {},
                    .isolated = job.spec.isolated,
                    .instance_type = job.spec.instance_type,
                    .image = job.spec.image,
                    .entrypoint = job.spec.entrypoint,
                    .arguments = job.spec.arguments,
                    .hyperparameters = job.spec.hyperparameters,
                    .environment = job.spec.environment,
                    .channels = job.spec.channels,
                    .output_uri = job.spec.output_uri(),
                    .compress_output = job.spec.compress_output,
                    .checkpoint = job.spec.checkpoint,
                    .threads = std::max(1, settings.cores / job.spec.instance_count),
                    .job_access_key = job.credentials.access_key,
                    .job_secret_key = job.credentials.secret_key,
                    .job_session_token = job.credentials.session_token};
    for (const Node& one : job.nodes) {
        task.hosts.push_back(one.host);
        task.addresses.push_back(one.address);
    }
    return task;
}

}  // namespace

bool Job::is_terminal() const {
    return status == "Completed" || status == "Failed" || status == "Stopped";
}

int Job::nodes_left() const {
    return static_cast<int>(
        std::count_if(nodes.begin(), nodes.end(), [](const Node& node) { return !node.gone; }));
}

std::vector<Output> step(State& state, const Input& input, TimePoint now) {
    Change change(state, now);
    std::visit([&change](const auto& what) { handle(change, what); }, input);
    if (change.reschedule) schedule(change);
    return change.take();
}

std::vector<Output> recover(const State& state, TimePoint now) {
    std::vector<Output> outputs;
    for (const auto& [name, job] : state.jobs) {
        if (job.is_settled()) continue;
        for (const Node& node : job.nodes) {
            if (node.gone) continue;
            if (!is_live(node) || job.is_terminal()) {
                outputs.emplace_back(RemoveNode{.node_id = node.id});
            } else if (node.report.phase == spec::NodePhase::launching && !node.released) {
                // Only a node never heard of is launched: one that was runs, or is lost.
                outputs.emplace_back(
                    LaunchNode{.node_id = node.id, .job = name, .host = node.host});
            } else {
                outputs.emplace_back(OrderChanged{.node_id = node.id});
            }
        }
        if (const auto deadline = next_deadline(job, now))
            outputs.emplace_back(WakeAt{.when = *deadline});
    }
    outputs.emplace_back(WakeAt{.when = now});  // Slots may have changed; a Tick sees to it.
    return outputs;
}

std::optional<spec::NodeOrder> order_for(const State& state, const std::string& node_id) {
    const Job* job = find_job_of_node(state, node_id);
    if (job == nullptr || job->is_terminal()) return std::nullopt;
    for (const Node& node : job->nodes) {
        if (node.id != node_id || !is_live(node)) continue;
        return spec::NodeOrder{.version = node.order_version,
                               .task = task_of(state.settings, *job, node),
                               .stop = node.stop,
                               .stop_grace = node.stop_grace,
                               .assemble = node.assemble,
                               .release = node.released};
    }
    return std::nullopt;
}

const Job* find_job(const State& state, const std::string& name) {
    const auto found = state.jobs.find(name);
    return found == state.jobs.end() ? nullptr : &found->second;
}

const Job* find_job_by_arn(const State& state, const std::string& arn) {
    const Job* job = find_job(state, arn.substr(arn.rfind('/') + 1));
    if (job && job->spec.arn == arn) return job;
    const std::string lower = to_lower(arn);
    for (const auto& [name, candidate] : state.jobs) {
        if (to_lower(candidate.spec.arn) == lower) return &candidate;
    }
    return nullptr;
}

const Job* find_job_of_node(const State& state, const std::string& node_id) {
    const Job* job = find_job(state, job_name_of(node_id));
    if (job == nullptr) return nullptr;
    const bool has = std::any_of(job->nodes.begin(), job->nodes.end(),
                                 [&](const Node& node) { return node.id == node_id; });
    return has ? job : nullptr;
}

}  // namespace gruca::control
