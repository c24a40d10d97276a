// tests/sim/world.h
//
// control's whole surroundings, simulated from a seed: users who create and stop jobs, a service
// that crashes before and after it commits and between what it does then, a cluster whose agents
// are slow, fail, die, hang, and are cut off and come back, and messages that come late, twice or
// never. Time is made up, so hours take milliseconds.
//
// After every step the promises of control/machine.h are checked; a broken one throws Broken. At
// the end everything must have come to rest: every job over, nothing running, and the inputs played
// again from the beginning must give the same state.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "control/machine.h"

namespace gruca::sim {

struct Broken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a run has seen, to know that the simulation visits what it is meant to visit.
using Census = std::map<std::string, int>;

class World {
  public:
    explicit World(std::uint64_t seed);

    void run();  // To the end. Throws Broken.
    const Census& census() const { return census_; }

  private:
    // One agent and what runs under it.
    struct Agent {
        std::string job;
        spec::NodeReport state;
        bool running = false;  // Something of the node runs on the machine.
        bool alive = false;    // It polls, works and reports.
        bool removed = false;  // Must never run again.
        bool deaf = false;     // Ignores an order to stop.
        bool stuck = false;    // Killed, and hangs in the kernel for some time.
        bool assembling = false;
        bool loses_data = false;
        int exit_code = 0;
        int programs_begun = 0;
        std::int64_t version_seen = 0;
        TimePoint cut_until = {};  // It goes on unheard, and hears nothing.
        TimePoint lane_free = {};  // Launches and removals of one node do not overtake each other.
    };

    // ---- chance and time
    bool chance(double probability);
    std::int64_t pick(std::int64_t low, std::int64_t high);
    Duration some_ms(std::int64_t low, std::int64_t high) { return Duration(pick(low, high)); }
    void at(TimePoint when, std::function<void()> event);
    void after(Duration delay, std::function<void()> event) { at(now_ + delay, std::move(event)); }

    // ---- users
    void create_job(int number);
    void stop_job(const std::string& name);

    // ---- the service
    bool take(const control::Input& input);  // False while it is down: nobody heard.
    void recall(const control::Input& input);
    void persist(const std::vector<control::Output>& outputs);
    void forget_what_is_over();
    void act(const std::vector<control::Output>& outputs);
    void act_on(const control::Output& output);
    bool is_busy() const;  // Trouble comes only in the busy time.
    void crash();
    void restart();

    // ---- the cluster
    void launch(const std::string& id, const std::string& job);
    void remove(const std::string& id);
    void tell_lost(const std::string& id, const std::string& why);
    void die(const std::string& id);
    void cut_off(const std::string& id);

    // ---- agents
    void poll(const std::string& id);
    void wake(const std::string& id);
    void obey(Agent& agent, const spec::NodeOrder& order);
    void work(const std::string& id);
    void end_program(Agent& agent, int exit_code);
    void assemble(const std::string& id);
    void leave(const std::string& id);
    void report(const Agent& agent);

    // ---- promises
    void check();
    void check_row(const control::Job& job) const;
    void check_terminal(const control::Job& job);
    void check_rest() const;
    void check_replay() const;
    void require(bool condition, const std::string& what) const;

    const std::uint64_t seed_;
    std::mt19937_64 random_;
    const TimePoint begin_ = time_from_ms(1'767'225'600'000);
    TimePoint now_ = begin_;
    std::multimap<TimePoint, std::function<void()>> events_;
    double trouble_ = 0;  // How often things go wrong in this world.

    control::State state_;
    std::map<std::string, Json> rows_;  // The database: every job, as the state no longer has it.
    bool up_ = true;
    std::int64_t life_ = 0;  // Of the service; what an earlier one wanted to do is forgotten.

    std::map<std::string, Agent> agents_;
    std::map<std::string, Json> terminal_;  // How jobs ended.
    std::map<std::string, std::int64_t> versions_;
    std::vector<std::pair<TimePoint, Json>> inputs_;
    Census census_;
};

}  // namespace gruca::sim
