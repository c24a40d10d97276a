#include <fmt/format.h>

#include "control/machine.h"

namespace gruca::control {
namespace {

Json write(const CreateJob& input) {
    return Json::object({{"kind", "CreateJob"},
                         {"request", input.request},
                         {"spec", input.spec.to_json()},
                         {"tags", tags_to_json(input.tags)},
                         {"credentials", input.credentials.to_json()},
                         {"seed", input.seed}});
}

Json write(const StopJob& input) {
    return Json::object({{"kind", "StopJob"}, {"request", input.request}, {"name", input.name}});
}

Json write(const AddTags& input) {
    return Json::object({{"kind", "AddTags"},
                         {"request", input.request},
                         {"arn", input.arn},
                         {"tags", tags_to_json(input.tags)}});
}

Json write(const DeleteTags& input) {
    Json keys = Json::array();
    for (const std::string& key : input.keys) keys.push(key);
    return Json::object({{"kind", "DeleteTags"},
                         {"request", input.request},
                         {"arn", input.arn},
                         {"keys", std::move(keys)}});
}

Json write(const NodeReported& input) {
    return Json::object({{"kind", "NodeReported"}, {"report", input.report.to_json()}});
}

Json write(const NodeLost& input) {
    return Json::object({{"kind", "NodeLost"}, {"node_id", input.node_id}, {"why", input.why}});
}

Json write(const NodeRemoved& input) {
    return Json::object({{"kind", "NodeRemoved"}, {"node_id", input.node_id}});
}

Json write(const NodeStuck& input) {
    return Json::object({{"kind", "NodeStuck"}, {"node_id", input.node_id}, {"why", input.why}});
}

Json write(const Tick&) {
    return Json::object({{"kind", "Tick"}});
}

std::vector<std::string> keys_of(const Json& json) {
    std::vector<std::string> keys;
    for (const Json& key : json.as_array()) keys.push_back(key.as_string());
    return keys;
}

}  // namespace

Json to_json(const Input& input) {
    return std::visit([](const auto& what) { return write(what); }, input);
}

Input input_from_json(const Json& json) {
    const std::string kind = json.at("kind").as_string();
    const auto text = [&json](const char* key) { return json.at(key).as_string(); };
    if (kind == "CreateJob") {
        return CreateJob{.request = text("request"),
                         .spec = spec::TrainJob::from_json(json.at("spec")),
                         .tags = tags_from_json(json.at("tags")),
                         .credentials = spec::JobCredentials::from_json(json.at("credentials")),
                         .seed = text("seed")};
    }
    if (kind == "StopJob") return StopJob{.request = text("request"), .name = text("name")};
    if (kind == "AddTags") {
        return AddTags{.request = text("request"),
                       .arn = text("arn"),
                       .tags = tags_from_json(json.at("tags"))};
    }
    if (kind == "DeleteTags") {
        return DeleteTags{
            .request = text("request"), .arn = text("arn"), .keys = keys_of(json.at("keys"))};
    }
    if (kind == "NodeReported") {
        return NodeReported{.report = spec::NodeReport::from_json(json.at("report"))};
    }
    if (kind == "NodeLost") return NodeLost{.node_id = text("node_id"), .why = text("why")};
    if (kind == "NodeRemoved") return NodeRemoved{.node_id = text("node_id")};
    if (kind == "NodeStuck") return NodeStuck{.node_id = text("node_id"), .why = text("why")};
    if (kind == "Tick") return Tick{};
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no input '{}'", kind));
}

}  // namespace gruca::control
