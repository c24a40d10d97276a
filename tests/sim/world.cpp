#include "sim/world.h"

#include <fmt/format.h>

namespace gruca::sim {

using control::Job;
using control::Node;
using spec::NodePhase;
using spec::StopOrder;
using namespace std::chrono_literals;

namespace {

constexpr int kJobsMax = 12;
constexpr int kEventsMax = 200'000;
constexpr Duration kBusyTime =
    1h;  // Users and trouble come within it; afterwards all comes to rest.

std::string name_of(int number) {
    return fmt::format("job-{}", number);
}

}  // namespace

World::World(std::uint64_t seed) : seed_(seed), random_(seed) {
    state_.settings = {.slots = static_cast<int>(pick(1, 6)), .cores = 2};
    trouble_ = static_cast<double>(pick(0, 10)) / 10;
}

void World::run() {
    const int jobs = static_cast<int>(pick(1, kJobsMax));
    for (int i = 0; i < jobs; ++i) {
        const TimePoint created = now_ + some_ms(0, kBusyTime.count() / 2);
        at(created, [this, i] { create_job(i); });
        for (std::int64_t stops = pick(0, 2); stops > 0 && chance(0.5); --stops) {
            const Duration patience = chance(0.5) ? some_ms(0, 5'000) : some_ms(0, 1'800'000);
            at(created + patience, [this, i] { stop_job(name_of(i)); });
        }
    }
    for (std::int64_t crashes = pick(0, 4); crashes > 0 && chance(trouble_); --crashes) {
        at(now_ + some_ms(0, kBusyTime.count()), [this] { crash(); });
    }
    for (int handled = 0; !events_.empty(); ++handled) {
        require(handled < kEventsMax, "the world does not come to rest");
        const auto next = events_.begin();
        now_ = next->first;
        const std::function<void()> event = std::move(next->second);
        events_.erase(next);
        event();
    }
    check_rest();
    check_replay();
}

// ---- chance and time ----------------------------------------------------------------------------

bool World::chance(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

std::int64_t World::pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
}

void World::at(TimePoint when, std::function<void()> event) {
    events_.emplace(std::max(when, now_), std::move(event));
}

// ---- users --------------------------------------------------------------------------------------

void World::create_job(int number) {
    control::CreateJob command{.request = fmt::format("create-{}", number),
                               .spec = {},
                               .tags = {{"number", std::to_string(number)}},
                               .credentials = {},
                               .seed = fmt::format("{:016x}", random_())};
    command.spec.name = chance(0.05) ? name_of(0) : name_of(number);
    command.spec.arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/" + command.spec.name;
    command.spec.output_path = "s3://bucket/out";
    command.spec.instance_type = "ml.c5.xlarge";
    command.spec.instance_count = static_cast<int>(pick(1, state_.settings.slots + 1));
    command.spec.max_runtime_s = chance(0.3) ? pick(1, 60) : 86400;
    if (!take(command)) after(some_ms(100, 5'000), [this, number] { create_job(number); });
}

void World::stop_job(const std::string& name) {
    const control::StopJob command{.request = "stop", .name = name};
    if (!take(command)) after(some_ms(100, 5'000), [this, name] { stop_job(name); });
}

// ---- the service --------------------------------------------------------------------------------

bool World::is_busy() const {
    return now_ < begin_ + kBusyTime;
}

bool World::take(const control::Input& input) {
    if (!up_) return false;
    if (is_busy() && chance(trouble_ * 0.003)) {  // It dies before the commit: nobody heard.
        ++census_["unheard"];
        control::step(state_, input, now_);
        crash();
        return false;
    }
    inputs_.emplace_back(now_, control::to_json(input));
    recall(input);
    const std::vector<control::Output> outputs = control::step(state_, input, now_);
    persist(outputs);
    check();
    forget_what_is_over();
    // It may die after the commit and before it has acted on any of it, or on all of it.
    const bool dies = is_busy() && chance(trouble_ * 0.01);
    for (const control::Output& output : outputs) {
        if (dies && chance(0.5)) break;
        act_on(output);
    }
    if (dies) crash();
    return true;
}

// As the service does: a job that is over is in the state only while a command is about it.
void World::recall(const control::Input& input) {
    std::string name;
    if (const auto* create = std::get_if<control::CreateJob>(&input)) name = create->spec.name;
    if (const auto* stop = std::get_if<control::StopJob>(&input)) name = stop->name;
    const auto row = rows_.find(name);
    if (row == rows_.end() || state_.jobs.contains(name)) return;
    ++census_["recalled"];
    state_.jobs.emplace(name, Job::from_json(Json::parse(row->second.dump())));
}

void World::forget_what_is_over() {
    std::erase_if(state_.jobs, [](const auto& entry) { return entry.second.is_settled(); });
}

void World::persist(const std::vector<control::Output>& outputs) {
    for (const control::Output& output : outputs) {
        const auto* changed = std::get_if<control::JobChanged>(&output);
        if (changed) rows_[changed->name] = state_.jobs.at(changed->name).to_json();
    }
}

void World::act(const std::vector<control::Output>& outputs) {
    for (const control::Output& output : outputs) act_on(output);
}

void World::act_on(const control::Output& output) {
    const std::int64_t life = life_;
    const auto while_it_lives = [this, life](std::function<void()> what) {
        return [this, life, what = std::move(what)] {
            if (life == life_) what();
        };
    };
    if (const auto* wanted = std::get_if<control::LaunchNode>(&output)) {
        Agent& agent = agents_[wanted->node_id];
        agent.lane_free = std::max(agent.lane_free, now_) + some_ms(0, 2'000);
        at(agent.lane_free,
           while_it_lives([this, id = wanted->node_id, job = wanted->job] { launch(id, job); }));
    } else if (const auto* unwanted = std::get_if<control::RemoveNode>(&output)) {
        Agent& agent = agents_[unwanted->node_id];
        agent.lane_free = std::max(agent.lane_free, now_) + some_ms(0, 2'000);
        at(agent.lane_free, while_it_lives([this, id = unwanted->node_id] { remove(id); }));
    } else if (const auto* order = std::get_if<control::OrderChanged>(&output)) {
        after(some_ms(0, 500), [this, id = order->node_id] { poll(id); });
    } else if (const auto* tick = std::get_if<control::WakeAt>(&output)) {
        at(tick->when, while_it_lives([this] { take(control::Tick{}); }));
    } else if (const auto* reply = std::get_if<control::Reply>(&output)) {
        ++census_[reply->error ? "refused" : "accepted"];
    }
}

void World::crash() {
    if (!up_) return;
    ++census_["crash"];
    up_ = false;
    ++life_;
    after(some_ms(0, 60'000), [this] { restart(); });
}

void World::restart() {
    control::State again;
    again.settings = state_.settings;
    for (const auto& [name, row] : rows_) {
        Job job = Job::from_json(Json::parse(row.dump()));
        again.next_number = std::max(again.next_number, job.number + 1);
        if (!job.is_settled()) again.jobs.emplace(name, std::move(job));
    }
    state_ = std::move(again);
    up_ = true;
    check();
    act(control::recover(state_, now_));
    // The cluster watches its directory again and says once more who is gone.
    for (const auto& [id, agent] : agents_) {
        if (agent.alive || agent.removed || agent.job.empty()) continue;
        after(some_ms(0, 30'000), [this, id = id] { tell_lost(id, "gone while nobody looked"); });
    }
}

// ---- the cluster --------------------------------------------------------------------------------

void World::launch(const std::string& id, const std::string& job) {
    Agent& agent = agents_[id];
    require(!agent.removed, "a removed node is launched again: " + id);
    if (!agent.job.empty()) {  // A second launch does nothing, but one that is gone is said again.
        if (!agent.alive) tell_lost(id, "gone before its second launch");
        return;
    }
    if (chance(trouble_ * 0.03)) {
        tell_lost(id, "cannot be started");
        return;
    }
    agent.job = job;
    agent.state.node_id = id;
    agent.state.phase = NodePhase::ready;
    agent.running = agent.alive = true;
    agent.deaf = chance(trouble_ * 0.05);
    agent.loses_data = chance(trouble_ * 0.05);
    agent.exit_code = chance(trouble_ * 0.1) ? 1 : 0;
    report(agent);
    after(some_ms(0, 2'000), [this, id] { wake(id); });
    after(some_ms(0, 2'000), [this, id] { work(id); });
    if (chance(trouble_ * 0.3)) after(some_ms(0, 100'000), [this, id] { die(id); });
    if (chance(trouble_ * 0.3)) after(some_ms(0, 100'000), [this, id] { cut_off(id); });
}

void World::remove(const std::string& id) {
    if (chance(trouble_ * 0.1)) return;  // It did not work; control asks again.
    Agent& agent = agents_[id];
    if (!agent.removed && chance(trouble_ * 0.05)) agent.stuck = true;
    agent.running = agent.alive = false;
    if (agent.stuck) {
        ++census_["stuck"];
        agent.stuck = !chance(0.1);
        take(control::NodeStuck{.node_id = id, .why = "process 7 hangs in the kernel"});
        return;
    }
    agent.removed = true;
    take(control::NodeRemoved{.node_id = id});
}

void World::tell_lost(const std::string& id, const std::string& why) {
    take(control::NodeLost{.node_id = id, .why = why});
}

// Its agent is killed or hangs; what it started runs on until the node is removed.
void World::die(const std::string& id) {
    Agent& agent = agents_[id];
    if (!agent.alive) return;
    ++census_["death"];
    agent.alive = false;
    const Duration noticed = chance(0.5) ? some_ms(0, 1'000) : some_ms(30'000, 31'000);
    after(noticed, [this, id] { tell_lost(id, "its agent died"); });
}

// Nothing reaches it and nothing comes from it for a while; it does not know that it may have been
// given up meanwhile.
void World::cut_off(const std::string& id) {
    Agent& agent = agents_[id];
    if (!agent.alive) return;
    ++census_["cut"];
    agent.cut_until = now_ + some_ms(0, 90'000);
    after(some_ms(30'000, 31'000), [this, id] {
        if (now_ >= agents_[id].cut_until) return;
        ++census_["silent"];
        tell_lost(id, "its agent is silent");
    });
}

// ---- agents -------------------------------------------------------------------------------------

void World::poll(const std::string& id) {
    Agent& agent = agents_[id];
    if (!agent.alive) return;
    if (up_ && now_ >= agent.cut_until && !chance(trouble_ * 0.1)) {
        const auto order = control::order_for(state_, id);
        require(!order || order->version >= agent.version_seen, "an order grew older: " + id);
        if (order) agent.version_seen = order->version;
        obey(agent, order.value_or(spec::NodeOrder{
                        .version = 0, .task = {}, .stop = StopOrder::kill, .release = true}));
        report(agent);
    }
}

// It polls and reports for ever, whatever it hears.
void World::wake(const std::string& id) {
    if (!agents_[id].alive) return;
    poll(id);
    after(some_ms(2'000, 20'000), [this, id] { wake(id); });
}

void World::obey(Agent& agent, const spec::NodeOrder& order) {
    const std::string id = agent.state.node_id;
    const bool running = agent.state.phase == NodePhase::training && !agent.state.ended;
    if (order.release) {
        if (running) end_program(agent, 137);
        after(some_ms(0, 3'000), [this, id] { leave(id); });
    } else if (order.stop == StopOrder::kill) {
        if (running) end_program(agent, 137);
        if (!agent.deaf) agent.state.phase = std::max(agent.state.phase, NodePhase::uploaded);
    } else if (order.stop == StopOrder::stop && !agent.deaf) {
        if (agent.state.phase < NodePhase::training) agent.state.phase = NodePhase::uploaded;
        if (running) {
            after(some_ms(0, order.stop_grace.count() * 1'000), [this, id] {
                Agent& stopped = agents_[id];
                const bool still = stopped.state.phase == NodePhase::training;
                if (stopped.alive && still) end_program(stopped, chance(0.5) ? 0 : 143);
            });
        }
    }
    if (order.assemble && agent.state.phase == NodePhase::uploaded && !agent.assembling) {
        agent.assembling = true;
        after(some_ms(0, 5'000), [this, id] { assemble(id); });
    }
}

// One step towards the end, then another one later.
void World::work(const std::string& id) {
    Agent& agent = agents_[id];
    spec::NodeReport& state = agent.state;
    if (!agent.alive || state.given_up || state.phase >= NodePhase::uploaded) return;
    if (state.phase == NodePhase::ready) {
        state.phase = NodePhase::downloading;
    } else if (state.phase == NodePhase::downloading && agent.loses_data) {
        state.given_up = true;
        state.failure = "no such data";
        state.failure_kind = "ClientError";
    } else if (state.phase == NodePhase::downloading) {
        state.phase = NodePhase::training;
        ++agent.programs_begun;
    } else if (state.phase == NodePhase::training) {
        end_program(agent, agent.exit_code);
    } else {
        state.phase = NodePhase::uploaded;
    }
    report(agent);
    const bool trains = state.phase == NodePhase::training;
    const Duration next = trains ? some_ms(0, 120'000) : some_ms(0, 10'000);
    after(next, [this, id] { work(id); });
    // Somebody stops the job just as its next step is taken.
    if (chance(trouble_ * 0.1)) {
        after(next + some_ms(-300, 300), [this, job = agent.job] { stop_job(job); });
    }
}

void World::end_program(Agent& agent, int exit_code) {
    if (agent.state.ended) return;
    agent.state.phase = NodePhase::uploading;
    agent.state.ended = true;
    agent.state.exit_code = exit_code;
    agent.state.ended_at = now_;
    const std::string id = agent.state.node_id;
    after(some_ms(0, 10'000), [this, id] { work(id); });
}

void World::assemble(const std::string& id) {
    Agent& agent = agents_[id];
    if (!agent.alive || agent.state.phase != NodePhase::uploaded) return;
    if (chance(trouble_ * 0.05)) {
        agent.state.given_up = true;
        agent.state.failure = "disk full";
        agent.state.failure_kind = "ClientError";
    } else {
        agent.state.phase = NodePhase::assembled;
    }
    report(agent);
}

void World::leave(const std::string& id) {
    Agent& agent = agents_[id];
    if (!agent.alive) return;
    if (agent.deaf && chance(0.5)) return;  // It hangs on its way out.
    agent.running = agent.alive = false;
    after(some_ms(0, 1'000), [this, id] { tell_lost(id, "it exited"); });
}

void World::report(const Agent& agent) {
    if (now_ < agent.cut_until) return;
    const std::int64_t copies = chance(trouble_ * 0.3) ? pick(0, 3) : 1;
    for (std::int64_t i = 0; i < copies; ++i) {
        const Duration delay = chance(trouble_ * 0.1) ? some_ms(0, 60'000) : some_ms(0, 200);
        after(delay, [this, heard = agent.state] { take(control::NodeReported{.report = heard}); });
    }
}

}  // namespace gruca::sim
