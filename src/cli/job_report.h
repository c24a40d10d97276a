// cli/job_report.h
//
// A job for a person who wants to understand it: what it did when and for how long, where its nodes
// are, how far its training is, and what to do about its failure.
//
// Pure functions of the API's answers. Formats: DescribeTrainingJob, and Gruca.DescribeNodes in
// docs/formats/http-node-protocol.md.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace gruca::cli {

// A stage a line: when it began, its name, how long it took, a bar in proportion. The stage a job
// is in counts up to `now`; how it ended comes last.
//
//   09:30:00  queued         2.0 s
//   09:30:02  training   2 min 05 s  ####################
//   09:32:07  Completed: Training job completed
std::string timeline_text(const Json& description, TimePoint now);

// A node a line: host, address, what it is doing or how it ended. Empty for a job without nodes.
std::string nodes_text(const Json& nodes);

// Why jobs fail, one row a kind: a piece of the FailureReason, what to do, and where the guide
// "When a job fails" says more.
struct FailureHint {
    std::string pattern;  // Occurs in the FailureReason.
    std::string remedy;
    std::string section;  // A heading of the guide.
};
const std::vector<FailureHint>& failure_hints();  // In order; the first that matches is meant.

// The hint's remedy and section, or, for a reason that no row knows, where to look.
std::string hint_text(const std::string& failure_reason, const std::string& job);

}  // namespace gruca::cli
