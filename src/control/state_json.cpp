// The durable form of a job: docs/formats/state.md. A change here is a change there.

#include <fmt/format.h>

#include <array>

#include "control/machine.h"
#include "spec/parts.h"

namespace gruca::control {
namespace {

constexpr std::int64_t kFormatVersion = 1;

// In the order of EndCause.
constexpr std::array kCauseNames = {"none", "stop_requested", "max_runtime", "node_failed",
                                    "node_lost"};
static_assert(kCauseNames.size() == static_cast<std::size_t>(EndCause::node_lost) + 1);

EndCause cause_from(const std::string& name) {
    for (std::size_t i = 0; i < kCauseNames.size(); ++i) {
        if (name == kCauseNames[i]) return static_cast<EndCause>(i);
    }
    throw Error(ErrorCode::data_loss, fmt::format("a job's row has an unknown cause: {}", name));
}

void set_time(Json& json, const char* key, const std::optional<TimePoint>& time) {
    if (time) json.set(key, to_ms(*time));
}

std::optional<TimePoint> get_time(const Json& json, const char* key) {
    const Json* ms = json.find(key);
    return ms ? std::optional(time_from_ms(ms->as_int())) : std::nullopt;
}

Json transition_to_json(const Transition& row) {
    Json json = Json::object(
        {{"status", row.status}, {"message", row.message}, {"start_ms", to_ms(row.start)}});
    set_time(json, "end_ms", row.end);
    return json;
}

Transition transition_from_json(const Json& json) {
    return {.status = json.at("status").as_string(),
            .message = json.at("message").as_string(),
            .start = time_from_ms(json.at("start_ms").as_int()),
            .end = get_time(json, "end_ms")};
}

Json node_to_json(const Node& node) {
    Json json = Json::object({{"id", node.id},
                              {"host", node.host},
                              {"address", node.address},
                              {"report", node.report.to_json()},
                              {"order_version", node.order_version},
                              {"stop", spec::name(node.stop)},
                              {"stop_grace_s", node.stop_grace.count()},
                              {"assemble", node.assemble},
                              {"released", node.released},
                              {"left", node.left},
                              {"lost", node.lost},
                              {"lost_why", node.lost_why},
                              {"gone", node.gone},
                              {"stuck_why", node.stuck_why},
                              {"ordered_at_ms", to_ms(node.ordered_at)}});
    set_time(json, "stop_ordered_at_ms", node.stop_ordered_at);
    set_time(json, "failed_at_ms", node.failed_at);
    set_time(json, "stuck_since_ms", node.stuck_since);
    return json;
}

Node node_from_json(const Json& json) {
    return {.id = json.at("id").as_string(),
            .host = json.at("host").as_string(),
            .address = json.at("address").as_string(),
            .report = spec::NodeReport::from_json(json.at("report")),
            .order_version = json.at("order_version").as_int(),
            .stop = spec::stop_order_from(json.at("stop").as_string()),
            .stop_grace = spec::seconds_from(json.at("stop_grace_s")),
            .assemble = json.at("assemble").as_bool(),
            .released = json.at("released").as_bool(),
            .left = json.at("left").as_bool(),
            .lost = json.at("lost").as_bool(),
            .lost_why = json.at("lost_why").as_string(),
            .gone = json.at("gone").as_bool(),
            .stuck_why = json.get_string("stuck_why"),
            .stuck_since = get_time(json, "stuck_since_ms"),
            .ordered_at = time_from_ms(json.at("ordered_at_ms").as_int()),
            .stop_ordered_at = get_time(json, "stop_ordered_at_ms"),
            .failed_at = get_time(json, "failed_at_ms")};
}

template <class Items, class ToJson>
Json list_of(const Items& items, ToJson to_json) {
    Json list = Json::array();
    for (const auto& item : items) list.push(to_json(item));
    return list;
}

}  // namespace

Json Job::to_json() const {
    Json json = Json::object({{"version", kFormatVersion},
                              {"spec", spec.to_json()},
                              {"number", number},
                              {"status", status},
                              {"secondary", secondary},
                              {"transitions", list_of(transitions, transition_to_json)},
                              {"created_ms", to_ms(created)},
                              {"modified_ms", to_ms(modified)},
                              {"failure_reason", failure_reason},
                              {"cause", kCauseNames.at(static_cast<std::size_t>(cause))},
                              {"seed", seed},
                              {"nodes", list_of(nodes, node_to_json)},
                              {"tags", tags_to_json(tags)},
                              {"credentials", credentials.to_json()}});
    set_time(json, "training_started_ms", training_started);
    set_time(json, "ended_ms", ended);
    set_time(json, "cause_at_ms", cause_at);
    set_time(json, "released_at_ms", released_at);
    return json;
}

Job Job::from_json(const Json& json) {
    if (json.at("version").as_int() != kFormatVersion) {
        throw Error(ErrorCode::data_loss,
                    fmt::format("a job's row was written by another version of gruca: format {}, "
                                "and this one reads {}",
                                json.at("version").dump(), kFormatVersion));
    }
    Job job;
    job.spec = spec::TrainJob::from_json(json.at("spec"));
    job.number = json.at("number").as_int();
    job.status = json.at("status").as_string();
    job.secondary = json.at("secondary").as_string();
    for (const Json& row : json.at("transitions").as_array()) {
        job.transitions.push_back(transition_from_json(row));
    }
    job.created = time_from_ms(json.at("created_ms").as_int());
    job.modified = time_from_ms(json.at("modified_ms").as_int());
    job.failure_reason = json.at("failure_reason").as_string();
    job.cause = cause_from(json.at("cause").as_string());
    job.seed = json.at("seed").as_string();
    for (const Json& node : json.at("nodes").as_array()) job.nodes.push_back(node_from_json(node));
    job.tags = tags_from_json(json.at("tags"));
    job.credentials = spec::JobCredentials::from_json(json.at("credentials"));
    job.training_started = get_time(json, "training_started_ms");
    job.ended = get_time(json, "ended_ms");
    job.cause_at = get_time(json, "cause_at_ms");
    job.released_at = get_time(json, "released_at_ms");
    return job;
}

Json tags_to_json(const Tags& tags) {
    Json list = Json::array();
    for (const auto& [key, value] : tags) {
        list.push(Json::object({{"Key", key}, {"Value", value}}));
    }
    return list;
}

Tags tags_from_json(const Json& json) {
    Tags tags;
    for (const Json& tag : json.as_array()) {
        tags.emplace_back(tag.at("Key").as_string(), tag.at("Value").as_string());
    }
    return tags;
}

}  // namespace gruca::control
