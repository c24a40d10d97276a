#include "spec/node.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "spec/parts.h"

namespace gruca::spec {
namespace {

// In the order of NodePhase.
constexpr std::array kPhaseNames = {"launching", "ready",    "downloading", "training",
                                    "uploading", "uploaded", "assembled"};
static_assert(kPhaseNames.size() == static_cast<std::size_t>(NodePhase::assembled) + 1);

// In the order of StopOrder.
constexpr std::array kStopNames = {"none", "stop", "kill"};
static_assert(kStopNames.size() == static_cast<std::size_t>(StopOrder::kill) + 1);

constexpr std::chrono::seconds kSecondsMax = std::chrono::years(100);

Json channel_to_json(const TaskChannel& channel) {
    return Json::object({{"name", channel.name},
                         {"s3_uri", channel.s3_uri},
                         {"input_mode", channel.input_mode},
                         {"distribution", channel.distribution},
                         {"content_type", channel.content_type},
                         {"record_wrapper", channel.record_wrapper}});
}

TaskChannel channel_from_json(const Json& json) {
    return {.name = json.at("name").as_string(),
            .s3_uri = json.at("s3_uri").as_string(),
            .input_mode = json.at("input_mode").as_string(),
            .distribution = json.at("distribution").as_string(),
            .content_type = json.get_string("content_type"),
            .record_wrapper = json.get_string("record_wrapper", "None")};
}

}  // namespace

int int32_from(const Json& json) {
    const std::int64_t number = json.as_int();
    if (number >= INT32_MIN && number <= INT32_MAX) return static_cast<int>(number);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a number in JSON does not fit into 32 bits: {}", number));
}

std::chrono::seconds seconds_from(const Json& json) {
    const std::chrono::seconds seconds(json.as_int());
    if (seconds.count() >= 0 && seconds <= kSecondsMax) return seconds;
    throw Error(ErrorCode::invalid_argument, fmt::format("not a number of seconds from 0 to {}: {}",
                                                         kSecondsMax.count(), seconds.count()));
}

Json to_json(const std::vector<std::string>& texts) {
    Json json = Json::array();
    for (const std::string& text : texts) json.push(text);
    return json;
}

std::vector<std::string> texts_from_json(const Json& json) {
    std::vector<std::string> texts;
    for (const Json& item : json.as_array()) texts.push_back(item.as_string());
    return texts;
}

Json to_json(const std::vector<TaskChannel>& channels) {
    Json json = Json::array();
    for (const TaskChannel& channel : channels) json.push(channel_to_json(channel));
    return json;
}

std::vector<TaskChannel> channels_from_json(const Json& json) {
    std::vector<TaskChannel> channels;
    for (const Json& item : json.as_array()) channels.push_back(channel_from_json(item));
    return channels;
}

Json to_json(const TaskCheckpoint& checkpoint) {
    return Json::object({{"s3_uri", checkpoint.s3_uri}, {"local_path", checkpoint.local_path}});
}

TaskCheckpoint checkpoint_from_json(const Json& json) {
    return {.s3_uri = json.at("s3_uri").as_string(),
            .local_path = json.at("local_path").as_string()};
}

Json NodeNetwork::to_json() const {
    return Json::object({{"bridge", bridge},
                         {"isolated_bridge", isolated_bridge},
                         {"subnet", subnet},
                         {"gateway", gateway},
                         {"endpoint", endpoint}});
}

NodeNetwork NodeNetwork::from_json(const Json& json) {
    return {.bridge = json.at("bridge").as_string(),
            .isolated_bridge = json.at("isolated_bridge").as_string(),
            .subnet = json.at("subnet").as_string(),
            .gateway = json.at("gateway").as_string(),
            .endpoint = json.at("endpoint").as_string()};
}

Json NodeLimits::to_json() const {
    return Json::object({{"memory_bytes", memory_bytes},
                         {"memory_reserve_bytes", memory_reserve_bytes},
                         {"processes", processes}});
}

NodeLimits NodeLimits::from_json(const Json& json) {
    return {.memory_bytes = static_cast<std::uint64_t>(json.at("memory_bytes").as_int()),
            .memory_reserve_bytes =
                static_cast<std::uint64_t>(json.at("memory_reserve_bytes").as_int()),
            .processes = static_cast<int>(json.at("processes").as_int())};
}

Json NodeConfig::to_json() const {
    Json json = Json::object({{"node_id", node_id},
                              {"endpoint", endpoint},
                              {"region", region},
                              {"access_key", access_key},
                              {"secret_key", secret_key},
                              {"work_dir", work_dir},
                              {"store_uri", store_uri},
                              {"hidden_paths", spec::to_json(hidden_paths)}});
    json.set("limits", limits.to_json());
    if (network) json.set("network", network->to_json());
    return json;
}

NodeConfig NodeConfig::from_json(const Json& json) {
    NodeConfig config{.node_id = json.at("node_id").as_string(),
                      .endpoint = json.at("endpoint").as_string(),
                      .region = json.at("region").as_string(),
                      .access_key = json.at("access_key").as_string(),
                      .secret_key = json.at("secret_key").as_string(),
                      .work_dir = json.at("work_dir").as_string(),
                      .store_uri = json.at("store_uri").as_string(),
                      .hidden_paths = texts_from_json(json.at("hidden_paths"))};
    if (const Json* given = json.find("limits")) config.limits = NodeLimits::from_json(*given);
    if (const Json* given = json.find("network")) config.network = NodeNetwork::from_json(*given);
    return config;
}

Json Task::to_json() const {
    Json json = Json::object({{"job_name", job_name},
                              {"job_arn", job_arn},
                              {"region", region},
                              {"host", host},
                              {"hosts", spec::to_json(hosts)},
                              {"addresses", spec::to_json(addresses)},
                              {"isolated", isolated},
                              {"instance_type", instance_type},
                              {"image", image},
                              {"entrypoint", spec::to_json(entrypoint)},
                              {"arguments", spec::to_json(arguments)},
                              {"hyperparameters", hyperparameters},
                              {"environment", environment},
                              {"channels", spec::to_json(channels)},
                              {"output_uri", output_uri},
                              {"compress_output", compress_output},
                              {"threads", threads},
                              {"job_access_key", job_access_key},
                              {"job_secret_key", job_secret_key},
                              {"job_session_token", job_session_token}});
    if (checkpoint) json.set("checkpoint", spec::to_json(*checkpoint));
    return json;
}

Task Task::from_json(const Json& json) {
    Task task{.job_name = json.at("job_name").as_string(),
              .job_arn = json.at("job_arn").as_string(),
              .region = json.at("region").as_string(),
              .host = json.at("host").as_string(),
              .hosts = texts_from_json(json.at("hosts")),
              .addresses = texts_from_json(json.at("addresses")),
              .isolated = json.get_bool("isolated"),
              .instance_type = json.at("instance_type").as_string(),
              .image = json.at("image").as_string(),
              .entrypoint = texts_from_json(json.at("entrypoint")),
              .arguments = texts_from_json(json.at("arguments")),
              .hyperparameters = json.at("hyperparameters"),
              .environment = json.at("environment"),
              .channels = channels_from_json(json.at("channels")),
              .output_uri = json.at("output_uri").as_string(),
              .compress_output = json.at("compress_output").as_bool(),
              .checkpoint = std::nullopt,
              .threads = int32_from(json.at("threads")),
              .job_access_key = json.at("job_access_key").as_string(),
              .job_secret_key = json.at("job_secret_key").as_string(),
              .job_session_token = json.at("job_session_token").as_string()};
    if (const Json* given = json.find("checkpoint")) task.checkpoint = checkpoint_from_json(*given);
    return task;
}

Json NodeOrder::to_json() const {
    Json json = Json::object({{"version", version},
                              {"stop", name(stop)},
                              {"stop_grace_s", stop_grace.count()},
                              {"assemble", assemble},
                              {"release", release}});
    if (task) json.set("task", task->to_json());
    return json;
}

NodeOrder NodeOrder::from_json(const Json& json) {
    NodeOrder order;
    order.version = json.at("version").as_int();
    if (const Json* task = json.find("task")) order.task = Task::from_json(*task);
    order.stop = stop_order_from(json.at("stop").as_string());
    order.stop_grace = seconds_from(json.at("stop_grace_s"));
    order.assemble = json.get_bool("assemble");
    order.release = json.get_bool("release");
    return order;
}

Json NodeReport::to_json() const {
    return Json::object({{"node_id", node_id},
                         {"phase", name(phase)},
                         {"ended", ended},
                         {"exit_code", exit_code},
                         {"exit_signal", exit_signal},
                         {"ended_at_ms", to_ms(ended_at)},
                         {"failure", failure},
                         {"failure_kind", failure_kind},
                         {"given_up", given_up},
                         {"gave_up_at_ms", to_ms(gave_up_at)}});
}

NodeReport NodeReport::from_json(const Json& json) {
    return {.node_id = json.at("node_id").as_string(),
            .phase = node_phase_from(json.at("phase").as_string()),
            .ended = json.get_bool("ended"),
            .exit_code = int32_from(json.get_int("exit_code")),
            .exit_signal = int32_from(json.get_int("exit_signal")),
            .ended_at = time_from_ms(json.get_int("ended_at_ms")),
            .failure = json.get_string("failure"),
            .failure_kind = json.get_string("failure_kind"),
            .given_up = json.get_bool("given_up"),
            .gave_up_at = time_from_ms(json.get_int("gave_up_at_ms"))};
}

const char* name(NodePhase phase) {
    return kPhaseNames.at(static_cast<std::size_t>(phase));
}

const char* name(StopOrder stop) {
    return kStopNames.at(static_cast<std::size_t>(stop));
}

NodePhase node_phase_from(const std::string& name) {
    for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
        if (name == kPhaseNames[i]) return static_cast<NodePhase>(i);
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no node phase '{}'", name));
}

StopOrder stop_order_from(const std::string& text) {
    for (std::size_t i = 0; i < kStopNames.size(); ++i) {
        if (text == kStopNames[i]) return static_cast<StopOrder>(i);
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no stop order '{}'", text));
}

}  // namespace gruca::spec
