#include "service/core.h"

#include <algorithm>
#include <type_traits>

#include "base/boundary.h"
#include "base/log.h"

namespace gruca::service {
namespace {

// How often silent nodes and late polls are looked for, and a failed commit is tried again.
constexpr std::chrono::milliseconds kSweepPeriod{500};
constexpr std::chrono::milliseconds kIdlePatience = std::chrono::seconds(60);

template <class T>
bool any_of_kind(const std::vector<control::Output>& outputs) {
    return std::any_of(outputs.begin(), outputs.end(), [](const control::Output& output) {
        return std::holds_alternative<T>(output);
    });
}

control::Reply reply_of(const std::vector<control::Output>& outputs) {
    for (const control::Output& output : outputs) {
        if (const auto* reply = std::get_if<control::Reply>(&output)) return *reply;
    }
    return {.request = "", .error = {}, .message = "", .body = Json::object()};
}

control::Reply failed(const Error& error) {
    return {.request = "", .error = error.code(), .message = error.message()};
}

}  // namespace

Core::Core(CoreParts parts, control::Settings settings) : parts_(parts) {
    state_.settings = settings;
    std::vector<JobSummary> over;
    parts_.database.for_each_summary([&](JobSummary job) {
        if (job.over) over.push_back(std::move(job));
    });
    parts_.jobs.publish_over(std::move(over));
    load_jobs();
}

Core::~Core() {
    stop();
}

void Core::load_jobs() {
    std::map<std::string, control::Job> jobs;
    parts_.database.for_each_live_job([&](const JobRow& row) {
        try {
            control::Job job = control::Job::from_json(Json::parse(row.json));
            parts_.jobs.publish(job);
            jobs.emplace(row.summary.name, std::move(job));
        } catch (Error& error) {
            error.add_context("reading job " + row.summary.name + " from the database");
            throw;
        }
    });
    state_.next_number = parts_.database.last_job_number() + 1;
    state_.jobs = std::move(jobs);
    recalled_.clear();
}

// Reads the state again if a commit has failed; false as long as that does not work either.
bool Core::is_current() {
    if (!stale_) return true;
    const auto error = run_guarded([&] { load_jobs(); });
    if (error) log_error("the state cannot be read again: {}", error->what());
    stale_ = error.has_value();
    return !stale_;
}

void Core::start(CoreOptions options, const ClusterMaker& make_cluster) {
    options_ = std::move(options);
    nodes_ = std::make_unique<NodeKeeper>(
        make_cluster, parts_.jobs, parts_.logs, parts_.store, parts_.clock,
        NodeEvents{
            .launched = [this](const std::string& node_id) { queue_.push(Launched{node_id}); },
            .lost =
                [this](const cluster::NodeGone& gone) {
                    tell(control::NodeLost{.node_id = gone.node_id, .why = gone.why});
                },
            .removed =
                [this](const std::string& node_id) {
                    tell(control::NodeRemoved{.node_id = node_id});
                },
            .stuck =
                [this](const cluster::NodeGone& stuck) {
                    tell(control::NodeStuck{.node_id = stuck.node_id, .why = stuck.why});
                }});
    remove_orphans();
    for (const auto& [name, job] : state_.jobs) {
        for (const control::Node& node : job.nodes) {
            if (!job.is_terminal() && !node.gone && !node.lost && !node.left) hear(node.id);
        }
    }
    act(control::recover(state_, parts_.clock.now()));
    thread_ = std::jthread([this] { run(); });
}

void Core::stop() {
    queue_.close();
    if (thread_.joinable()) thread_.join();
    nodes_.reset();
}

// From the service's own threads, which may wait.
void Core::tell(control::Input input) {
    queue_.push(Command{.input = std::move(input), .on_reply = {}});
}

void Core::submit(control::Input input, OnReply on_reply) {
    if (queue_.try_push(Command{.input = std::move(input), .on_reply = std::move(on_reply)}))
        return;
    throw Error(ErrorCode::unavailable, "the service is stopping or has too much to do; try again");
}

void Core::poll(Poll poll) {
    if (queue_.try_push(std::move(poll))) return;
    throw Error(ErrorCode::unavailable, "the service is stopping or has too much to do; try again");
}

void Core::nudge() {
    queue_.try_push(Nudge{});
}

// ---- the loop -----------------------------------------------------------------------------------

void Core::run() {
    while (!queue_.is_closed()) {
        std::vector<Item> items;
        std::optional<Item> item = queue_.pop_for(patience());
        while (item) {
            items.push_back(std::move(*item));
            if (items.size() == kBatchMax) break;
            item = queue_.pop_for(std::chrono::milliseconds(0));
        }
        if (const auto error = run_guarded([&] { handle(std::move(items)); })) {
            log_error("the loop failed on an input: {}", error->what());
        }
    }
}

std::chrono::milliseconds Core::patience() const {
    const bool sweeping = !heard_.empty() || !polls_.empty() || !again_.empty();
    const std::chrono::milliseconds longest = sweeping ? kSweepPeriod : kIdlePatience;
    if (wakes_.empty()) return longest;
    const auto until_wake = *wakes_.begin() - parts_.clock.now();
    return std::clamp(until_wake, std::chrono::milliseconds(0), longest);
}

void Core::handle(std::vector<Item> items) {
    std::vector<Command> commands = commands_of(items);
    add_due(commands);
    if (!commands.empty()) carry_through(std::move(commands));
    for (Item& item : items) {
        if (auto* poll = std::get_if<Poll>(&item)) take_poll(std::move(*poll));
        if (auto* launched = std::get_if<Launched>(&item)) hear_if_expected(launched->node_id);
    }
    answer_late_polls();
    give_up_silent_nodes();
}

std::vector<Core::Command> Core::commands_of(std::vector<Item>& items) {
    std::vector<Command> commands;
    for (Item& item : items) {
        auto* command = std::get_if<Command>(&item);
        if (command == nullptr) continue;
        if (const auto* reported = std::get_if<control::NodeReported>(&command->input)) {
            hear_if_expected(reported->report.node_id);
        } else if (const auto* lost = std::get_if<control::NodeLost>(&command->input)) {
            heard_.erase(lost->node_id);
        }
        commands.push_back(std::move(*command));
    }
    return commands;
}

void Core::add_due(std::vector<Command>& commands) {
    std::move(again_.begin(), again_.end(), std::back_inserter(commands));
    again_.clear();
    const TimePoint now = parts_.clock.now();
    if (wakes_.empty() || *wakes_.begin() > now) return;
    wakes_.erase(wakes_.begin(), wakes_.upper_bound(now));
    commands.push_back({.input = control::Tick{}, .on_reply = {}});
}

void Core::give_up_silent_nodes() {
    const auto now = parts_.clock.steady_now();
    for (auto it = heard_.begin(); it != heard_.end();) {
        if (!it->second || now - *it->second < options_.heartbeat_lost) {
            ++it;
            continue;
        }
        const auto seconds =
            std::chrono::duration_cast<std::chrono::seconds>(options_.heartbeat_lost).count();
        nodes_->give_up(
            {.node_id = it->first, .why = fmt::format("its agent was silent for {} s", seconds)});
        it = heard_.erase(it);
    }
}

// ---- decide, make durable, act ------------------------------------------------------------------

void Core::carry_through(std::vector<Command> commands) {
    if (!is_current()) return refuse(std::move(commands));
    std::vector<Stepped> batch;
    for (Command& command : commands) batch.push_back(step(std::move(command)));
    const Changes changes = changes_of(batch);
    if (!changes.empty()) {
        const auto error = run_guarded([&] { parts_.database.commit(changes); });
        if (error) {
            log_error("the state cannot be written, nothing was done: {}", error->what());
            stale_ = true;
            std::vector<Command> undone;
            for (Stepped& stepped : batch) undone.push_back(std::move(stepped.command));
            return refuse(std::move(undone));
        }
        publish(changes);
    }
    for (const Stepped& stepped : batch) {
        act(stepped.outputs);
        if (stepped.command.on_reply) stepped.command.on_reply(reply_of(stepped.outputs));
    }
    forget_what_is_over(changes);
}

// Shows control the job that is over and that a command is about, should there be one.
void Core::recall(const control::Input& input) {
    std::optional<std::string> name;
    if (const auto* create = std::get_if<control::CreateJob>(&input)) {
        name = create->spec.name;
    } else if (const auto* stop = std::get_if<control::StopJob>(&input)) {
        name = stop->name;
    } else if (const auto* add = std::get_if<control::AddTags>(&input)) {
        name = parts_.jobs.find_name_by_arn(add->arn);
    } else if (const auto* remove = std::get_if<control::DeleteTags>(&input)) {
        name = parts_.jobs.find_name_by_arn(remove->arn);
    }
    if (!name || state_.jobs.contains(*name)) return;
    const JobPtr job = parts_.jobs.find(*name);
    if (!job) return;
    state_.jobs.emplace(*name, *job);
    recalled_.push_back(*name);
}

void Core::forget_what_is_over(const Changes& changes) {
    const auto forget = [this](const std::string& name) {
        const auto found = state_.jobs.find(name);
        if (found != state_.jobs.end() && found->second.is_settled()) state_.jobs.erase(found);
    };
    for (const JobRow& row : changes.jobs) forget(row.summary.name);
    for (const std::string& name : recalled_) forget(name);
    recalled_.clear();
}

// Tells the callers; what the service itself wanted is tried again.
void Core::refuse(std::vector<Command> commands) {
    const Error told(ErrorCode::unavailable,
                     "the service cannot write its state; try again when it can");
    for (Command& command : commands) {
        if (command.on_reply) {
            command.on_reply(failed(told));
        } else {
            again_.push_back(std::move(command));
        }
    }
}

Core::Stepped Core::step(Command command) {
    Stepped stepped{.command = std::move(command), .outputs = {}};
    const auto error = run_guarded([&] {
        recall(stepped.command.input);
        stepped.outputs = control::step(state_, stepped.command.input, parts_.clock.now());
    });
    if (error) {
        log_warning("an input was refused: {}", error->what());
        stepped.outputs = {failed(*error)};
    }
    stepped.changed = any_of_kind<control::JobChanged>(stepped.outputs);
    return stepped;
}

Changes Core::changes_of(const std::vector<Stepped>& batch) {
    Changes changes;
    std::set<std::string> changed_jobs;
    for (const Stepped& stepped : batch) {
        if (stepped.changed) {
            changes.inputs.push_back(
                {.at = parts_.clock.now(), .json = control::to_json(stepped.command.input).dump()});
        }
        for (const control::Output& output : stepped.outputs) {
            add_output(changes, changed_jobs, output);
        }
    }
    for (const std::string& name : changed_jobs) add_job(changes, name);
    return changes;
}

void Core::add_output(Changes& changes, std::set<std::string>& changed_jobs,
                      const control::Output& output) {
    if (const auto* changed = std::get_if<control::JobChanged>(&output)) {
        changed_jobs.insert(changed->name);
    } else if (const auto* launched = std::get_if<control::LaunchNode>(&output)) {
        const KeyOwner owner{.kind = KeyKind::node, .owner = launched->node_id};
        if (parts_.keys.find_of(owner)) return;
        changes.keys.push_back(make_key(parts_.random, owner.kind, owner.owner));
    } else if (const auto* removed = std::get_if<control::RemoveNode>(&output)) {
        changes.forgotten.push_back({.kind = KeyKind::node, .owner = removed->node_id});
    }
}

// A job's credentials are keys from its creation to its end.
void Core::add_job(Changes& changes, const std::string& name) {
    const control::Job& job = state_.jobs.at(name);
    changes.jobs.push_back({.summary = summary_of(job), .json = job.to_json().dump()});
    const KeyOwner owner{.kind = KeyKind::job, .owner = name};
    if (job.is_terminal()) {
        changes.forgotten.push_back(owner);
    } else if (!parts_.keys.find_of(owner)) {
        changes.keys.push_back({.access_key = job.credentials.access_key,
                                .secret_key = job.credentials.secret_key,
                                .kind = owner.kind,
                                .owner = owner.owner,
                                .session_token = job.credentials.session_token});
    }
}

void Core::publish(const Changes& changes) {
    for (const KeyRecord& key : changes.keys) parts_.keys.put(key);
    for (const KeyOwner& owner : changes.forgotten) parts_.keys.forget(owner);
    for (const JobRow& row : changes.jobs) {
        const std::string& name = row.summary.name;
        const control::Job& job = state_.jobs.at(name);
        const auto before = parts_.jobs.find_listed(name);
        if (!before || before->summary.secondary != job.secondary) {
            log_info("job {}: {}{}{}", name, job.secondary, job.failure_reason.empty() ? "" : ", ",
                     job.failure_reason);
        }
        parts_.jobs.publish(job);
    }
}

void Core::act(const std::vector<control::Output>& outputs) {
    for (const control::Output& output : outputs) {
        if (const auto* launched = std::get_if<control::LaunchNode>(&output)) {
            launch(launched->node_id);
        } else if (const auto* order = std::get_if<control::OrderChanged>(&output)) {
            answer_poll(order->node_id);
        } else if (const auto* removed = std::get_if<control::RemoveNode>(&output)) {
            heard_.erase(removed->node_id);
            answer_poll(removed->node_id);
            nodes_->remove(removed->node_id);
        } else if (const auto* wake = std::get_if<control::WakeAt>(&output)) {
            wakes_.insert(wake->when);
        }
    }
}

// ---- nodes --------------------------------------------------------------------------------------

void Core::launch(const std::string& node_id) {
    const auto key = parts_.keys.find_of({.kind = KeyKind::node, .owner = node_id});
    if (!key) {
        log_error("node {} has no key and is not started", node_id);
        again_.push_back(
            {.input = control::NodeLost{.node_id = node_id, .why = "the service has lost its key"},
             .on_reply = {}});
        return;
    }
    spec::NodeConfig config = options_.node_config;
    config.node_id = node_id;
    config.access_key = key->access_key;
    config.secret_key = key->secret_key;
    heard_[node_id].reset();  // Until the launch is carried out.
    nodes_->launch(config);
}

void Core::hear(const std::string& node_id) {
    heard_[node_id] = parts_.clock.steady_now();
}

// Not of a node that is lost or being removed.
void Core::hear_if_expected(const std::string& node_id) {
    if (heard_.contains(node_id)) hear(node_id);
}

void Core::take_poll(Poll poll) {
    const std::string node_id = poll.node_id;
    hear_if_expected(node_id);
    if (is_current()) {
        answer_poll(node_id);  // An older poll of the same node has been given up.
        const spec::NodeOrder order = order_of(poll);
        if (order.version > poll.seen_version) return poll.on_order(order);
    }
    const auto deadline = parts_.clock.steady_now() + options_.poll_wait;
    polls_.insert_or_assign(node_id, WaitingPoll{.poll = std::move(poll), .deadline = deadline});
}

void Core::answer_poll(const std::string& node_id) {
    const auto found = polls_.find(node_id);
    if (found == polls_.end()) return;
    const Poll poll = std::move(found->second.poll);
    polls_.erase(found);
    poll.on_order(order_of(poll));
}

void Core::answer_late_polls() {
    if (polls_.empty() || !is_current()) return;
    const auto now = parts_.clock.steady_now();
    std::vector<std::string> late;
    for (const auto& [node_id, waiting] : polls_) {
        if (now >= waiting.deadline) late.push_back(node_id);
    }
    for (const std::string& node_id : late) {
        // It was waiting until now, so it was alive until now.
        hear_if_expected(node_id);
        answer_poll(node_id);
    }
}

spec::NodeOrder Core::order_of(const Poll& poll) const {
    if (auto order = control::order_for(state_, poll.node_id)) return *order;
    spec::NodeOrder end;
    end.version = poll.seen_version + 1;
    end.stop = spec::StopOrder::kill;
    end.release = true;
    return end;
}

// Nodes of no job in progress: left by a removal that failed, or by a database that was set back.
void Core::remove_orphans() {
    for (const std::string& node_id : nodes_->nodes()) {
        if (control::find_job_of_node(state_, node_id) != nullptr) continue;
        log_warning("removing node {}, which no job in progress has", node_id);
        nodes_->remove(node_id);
    }
}

}  // namespace gruca::service
