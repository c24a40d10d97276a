#include "control/change.h"

#include <algorithm>

#include "control/lifecycle.h"

namespace gruca::control {

void Change::reply(const std::string& request, Json body) {
    emit(Reply{.request = request, .error = std::nullopt, .message = "", .body = std::move(body)});
}

void Change::refuse(const std::string& request, ErrorCode code, std::string message) {
    emit(Reply{.request = request, .error = code, .message = std::move(message)});
}

void Change::move(Job& job, std::string_view status, std::string_view secondary,
                  std::string_view message) {
    if (!job.transitions.empty()) {
        Transition& last = job.transitions.back();
        if (last.status == secondary && last.message == message) return;
        last.end = std::max(now, last.start);  // The wall clock may have been set back.
    }
    const TimePoint start = job.transitions.empty() ? now : *job.transitions.back().end;
    job.transitions.push_back({.status = std::string(secondary),
                               .message = std::string(message),
                               .start = start,
                               .end = std::nullopt});
    job.status = status;
    job.secondary = secondary;
    job.modified = start;
    changed(job);
}

void Change::set_cause(Job& job, EndCause cause) {
    job.cause = cause;
    job.cause_at = now;
    changed(job);
}

void Change::order_stop(Job& job, Node& node, spec::StopOrder stop, std::chrono::seconds grace) {
    node.stop = stop;
    node.stop_grace = grace;
    if (!node.stop_ordered_at) node.stop_ordered_at = now;
    new_order(job, node);
}

void Change::order_assembly(Job& job, Node& node) {
    node.assemble = true;
    new_order(job, node);
}

void Change::order_release(Job& job, Node& node) {
    node.released = true;
    new_order(job, node);
}

void Change::new_order(Job& job, Node& node) {
    ++node.order_version;
    node.ordered_at = now;
    changed(job);
    emit(OrderChanged{.node_id = node.id});
}

std::vector<Output> Change::take() {
    std::vector<Output> all;
    for (const std::string& name : changed_) all.emplace_back(JobChanged{.name = name});
    all.insert(all.end(), outputs_.begin(), outputs_.end());
    for (const std::string& name : changed_) {
        const auto deadline = next_deadline(state.jobs.at(name), now);
        if (deadline) all.emplace_back(WakeAt{.when = *deadline});
    }
    return all;
}

}  // namespace gruca::control
