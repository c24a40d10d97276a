// control/lifecycle.h
//
// From what is known of a job's nodes to what is to be done. `advance` looks at the facts only, not
// at the input that brought them, so whichever order they arrive in leads to the same end.
#pragma once

#include <optional>

#include "control/change.h"

namespace gruca::control {

// Moves a job on as far as its facts allow. A job that waits for slots or is over stays as it is.
void advance(Change& change, Job& job);

// When the job must be looked at again though nothing is heard of it.
std::optional<TimePoint> next_deadline(const Job& job, TimePoint now);

// Gives slots to waiting jobs in the order of their creation, all nodes of a job at once. A job
// that does not fit holds up those behind it: small jobs cannot starve a large one.
void schedule(Change& change);
int slots_used(const State& state);

// FailureReason of a job whose cause is a failure: who, what, and how it ended, and `also`.
std::string failure_reason(const Job& job, const std::string& also = "");

// Merges what was heard into what is known; true when something is new.
bool merge(Node& node, const spec::NodeReport& heard, TimePoint now);

// Its agent may still hear orders and report.
bool is_live(const Node& node);

}  // namespace gruca::control
