#include "control/lifecycle.h"

#include <algorithm>
#include <array>

namespace gruca::control {
namespace {

using spec::NodePhase;
using spec::StopOrder;

bool is_failing(const Job& job) {
    return job.cause == EndCause::node_failed || job.cause == EndCause::node_lost;
}

bool is_stopping(const Job& job) {
    return job.cause == EndCause::stop_requested || job.cause == EndCause::max_runtime;
}

template <class Predicate>
bool all_nodes(const Job& job, Predicate predicate) {
    return std::all_of(job.nodes.begin(), job.nodes.end(), predicate);
}

template <class Predicate>
bool any_node(const Job& job, Predicate predicate) {
    return std::any_of(job.nodes.begin(), job.nodes.end(), predicate);
}

bool program_ended(const Node& node) {
    return node.report.ended;
}

// Its part of the outputs is safe, and of algo-1 the archives: the node may vanish.
bool is_dispensable(const Job& job, const Node& node) {
    const bool assembles = &node == &job.nodes.front();
    return !node.report.given_up &&
           node.report.phase >= (assembles ? NodePhase::assembled : NodePhase::uploaded);
}

TimePoint runtime_limit(const Job& job) {
    return *job.training_started + std::chrono::seconds(job.spec.max_runtime_s);
}

// MaxRuntimeInSeconds limits programs, not the upload that follows them.
bool is_limited(const Job& job) {
    return job.cause == EndCause::none && job.training_started && !all_nodes(job, program_ended);
}

void find_cause(Change& change, Job& job) {
    if (job.cause != EndCause::none || job.released_at) return;
    if (any_node(job, [](const Node& node) { return node.failed_at.has_value(); })) {
        change.set_cause(job, EndCause::node_failed);
    } else if (any_node(job, [&](const Node& node) {
                   return node.lost && !is_dispensable(job, node);
               })) {
        change.set_cause(job, EndCause::node_lost);
    } else if (is_limited(job) && change.now >= runtime_limit(job)) {
        change.set_cause(job, EndCause::max_runtime);
    }
}

// What a job in progress shows, in order; a node that has reached `phase` is at least so far.
struct Stage {
    NodePhase phase;
    const char* secondary;
    const char* message;
};
constexpr std::array kStages = {
    Stage{NodePhase::ready, "Downloading", "Downloading input data"},
    Stage{NodePhase::training, "Training",
          "Training image download completed. Training in progress."},
    Stage{NodePhase::uploading, "Uploading", "Uploading generated training model"},
};

// The job is as far as the node least advanced. Stages passed unseen are shown all the same.
void show_progress(Change& change, Job& job) {
    const auto shown = [&](const Stage& stage) {
        return std::any_of(job.transitions.begin(), job.transitions.end(),
                           [&](const Transition& row) { return row.status == stage.secondary; });
    };
    for (const Stage& stage : kStages) {
        const bool reached =
            all_nodes(job, [&](const Node& node) { return node.report.phase >= stage.phase; });
        if (!reached) return;
        if (!job.training_started) {
            job.training_started = change.now;
            change.changed(job);
        }
        if (!shown(stage)) change.move(job, "InProgress", stage.secondary, stage.message);
    }
}

void show_stopping(Change& change, Job& job) {
    if (job.status == "InProgress") {
        change.move(job, "Stopping", "Stopping",
                    job.cause == EndCause::max_runtime
                        ? "Stopping the training job: it has reached its MaxRuntimeInSeconds"
                        : "Stopping the training job");
    }
    const bool none_runs =
        all_nodes(job, [](const Node& node) { return node.report.ended || !is_live(node); });
    const bool was_uploading =
        std::any_of(job.transitions.begin(), job.transitions.end(),
                    [](const Transition& row) { return row.status == "Uploading"; });
    if (none_runs && any_node(job, program_ended) && !was_uploading) {
        change.move(job, "Stopping", "Uploading", kStages.back().message);
    }
}

// When an order to stop that shows no effect becomes one to kill.
TimePoint stop_limit(const Node& node) {
    return node.ordered_at + node.stop_grace + kStopSlack;
}

// Nothing more is expected of it before its release.
bool has_finished(const Node& node, TimePoint now) {
    if (!is_live(node) || node.report.given_up) return true;
    if (node.report.phase >= NodePhase::uploaded) return true;
    return node.stop == StopOrder::kill && now >= node.ordered_at + kKillGrace;
}

void give_stop_order(Change& change, Job& job, Node& node) {
    if (!is_live(node) || has_finished(node, change.now)) return;
    const auto& settings = change.state.settings;
    const bool discard = is_failing(job) && (node.report.ended || node.report.given_up);
    const bool ignored =
        node.stop == StopOrder::stop && !node.report.ended && change.now >= stop_limit(node);
    if (node.stop != StopOrder::kill && (discard || ignored)) {
        change.order_stop(job, node, StopOrder::kill, std::chrono::seconds(0));
    } else if (node.stop == StopOrder::none) {
        change.order_stop(job, node, StopOrder::stop,
                          is_failing(job) ? settings.peer_grace : settings.stop_grace);
    }
}

// Orders the archives of what was uploaded; true while they are still to come.
bool await_assembly(Change& change, Job& job) {
    Node& first = job.nodes.front();
    const bool possible = !is_failing(job) && is_live(first) && !first.report.given_up &&
                          first.stop != StopOrder::kill &&
                          first.report.phase == NodePhase::uploaded;
    if (!possible || !any_node(job, program_ended)) return false;
    if (!first.assemble) change.order_assembly(job, first);
    return true;
}

void release_when_finished(Change& change, Job& job) {
    const bool finished =
        all_nodes(job, [&](const Node& node) { return has_finished(node, change.now); });
    if (!finished || await_assembly(change, job)) return;
    job.released_at = change.now;
    change.changed(job);
    for (Node& node : job.nodes) {
        if (is_live(node)) change.order_release(job, node);
    }
}

// When a node that should be gone is to be removed, once more.
std::optional<TimePoint> removal_limit(const Node& node) {
    if (node.gone) return std::nullopt;
    if (node.lost || node.left) return node.ordered_at + kRemoveRetry;
    if (node.released) return node.ordered_at + kReleaseGrace;
    return std::nullopt;
}

void remove_overdue(Change& change, Job& job) {
    for (Node& node : job.nodes) {
        const auto limit = removal_limit(node);
        if (!limit || change.now < *limit) continue;
        node.ordered_at = change.now;
        change.changed(job);
        change.emit(RemoveNode{.node_id = node.id});
    }
}

std::string remains_of(const Job& job) {
    std::string text;
    for (const Node& node : job.nodes) {
        if (node.gone || node.stuck_why.empty()) continue;
        text += "; node " + node.host + " needs attention: " + node.stuck_why;
    }
    return text;
}

// In the job's present state, with another message: whoever waits for its end sees what it waits
// for.
void show_stuck(Change& change, Job& job) {
    const std::string remains = remains_of(job);
    if (!remains.empty()) {
        change.move(job, job.status, job.secondary, "Waiting for the end of the job" + remains);
    }
}

// It was killed and never runs again, though it is not gone.
bool is_over(const Node& node, TimePoint now) {
    return node.gone || (node.stuck_since && now >= *node.stuck_since + kStuckGrace);
}

std::string losses(const Job& job) {
    std::string text;
    for (const Node& node : job.nodes) {
        if (node.lost) text += "; node " + node.host + " was lost: " + node.lost_why;
        if (node.report.given_up && !node.report.failure.empty()) {
            text += "; node " + node.host + " could not finish: " + node.report.failure;
        }
    }
    return text + remains_of(job);
}

void finish(Change& change, Job& job) {
    if (is_failing(job)) {
        job.failure_reason = failure_reason(job, remains_of(job));
        change.move(job, "Failed", "Failed", "Training job failed");
    } else if (job.cause == EndCause::max_runtime) {
        change.move(job, "Stopped", "MaxRuntimeExceeded",
                    "Training job stopped: it has reached its MaxRuntimeInSeconds" + losses(job));
    } else if (job.cause == EndCause::stop_requested) {
        change.move(job, "Stopped", "Stopped", "Training job stopped" + losses(job));
    } else {
        change.move(job, "Completed", "Completed", "Training job completed" + remains_of(job));
    }
    job.transitions.back().end = job.transitions.back().start;
    // The end of the work, not of the cleaning up: what is billed ends here.
    job.ended = is_failing(job) ? *job.cause_at : job.released_at.value_or(job.modified);
    if (job.training_started) job.ended = std::max(*job.ended, *job.training_started);
    change.reschedule = true;
}

}  // namespace

bool is_live(const Node& node) {
    return !node.lost && !node.left && !node.gone;
}

void advance(Change& change, Job& job) {
    if (job.is_terminal()) {
        remove_overdue(change, job);
        return;
    }
    if (job.nodes.empty()) {
        if (job.cause == EndCause::none) return;
        change.move(job, "Stopping", "Stopping", "Stopping the training job");
        finish(change, job);
        return;
    }
    find_cause(change, job);
    if (job.cause == EndCause::none) show_progress(change, job);
    if (is_stopping(job)) show_stopping(change, job);
    if (!job.released_at) {
        if (job.cause != EndCause::none) {
            for (Node& node : job.nodes) give_stop_order(change, job, node);
        }
        release_when_finished(change, job);
    }
    remove_overdue(change, job);
    if (all_nodes(job, [&](const Node& node) { return is_over(node, change.now); })) {
        finish(change, job);
    } else {
        show_stuck(change, job);
    }
}

std::optional<TimePoint> next_deadline(const Job& job, TimePoint now) {
    if (job.nodes.empty()) return std::nullopt;
    std::optional<TimePoint> next;
    const auto consider = [&next, now](TimePoint when) {
        if (when > now) next = next ? std::min(*next, when) : when;
    };
    if (job.is_terminal()) {
        for (const Node& node : job.nodes) {
            if (const auto limit = removal_limit(node)) consider(*limit);
        }
        return next;
    }
    if (is_limited(job)) consider(runtime_limit(job));
    for (const Node& node : job.nodes) {
        if (const auto limit = removal_limit(node)) consider(*limit);
        if (node.stuck_since && !node.gone) consider(*node.stuck_since + kStuckGrace);
        if (job.released_at) continue;
        if (!is_live(node) || node.report.phase >= NodePhase::uploaded) continue;
        if (node.stop == StopOrder::stop && !node.report.ended) consider(stop_limit(node));
        if (node.stop == StopOrder::kill) consider(node.ordered_at + kKillGrace);
    }
    return next;
}

}  // namespace gruca::control
