// control/change.h
//
// One step in the making: the state, the time, and the outputs so far. Whatever changes a job goes
// through here, so that no change is made without being told.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/machine.h"

namespace gruca::control {

class Change {
  public:
    Change(State& state_in, TimePoint now_in) : state(state_in), now(now_in) {}

    State& state;
    const TimePoint now;

    template <class What>
    void emit(What what) {
        outputs_.emplace_back(std::move(what));
    }
    void reply(const std::string& request, Json body);
    void refuse(const std::string& request, ErrorCode code, std::string message);

    void changed(const Job& job) { changed_.insert(job.spec.name); }
    // The job's next row of SecondaryStatusTransitions, unless the last says the same.
    void move(Job& job, std::string_view status, std::string_view secondary,
              std::string_view message);
    void set_cause(Job& job, EndCause cause);

    // Each makes a new version of the node's order.
    void order_stop(Job& job, Node& node, spec::StopOrder stop, std::chrono::seconds grace);
    void order_assembly(Job& job, Node& node);
    void order_release(Job& job, Node& node);

    // Whether slots may have come free or a job has come to wait for them.
    bool reschedule = false;

    // JobChanged for each job changed, then everything emitted, then the wishes for a Tick.
    std::vector<Output> take();

  private:
    void new_order(Job& job, Node& node);

    std::set<std::string> changed_;
    std::vector<Output> outputs_;
};

}  // namespace gruca::control
