#include "agent/keeper_order.h"

#include "base/error.h"
#include "spec/parts.h"

namespace gruca::agent {
namespace {

constexpr int kPrefixMax = 32;  // Of an IPv4 address.

Json strings(const std::vector<std::string>& words) {
    Json array = Json::array();
    for (const std::string& word : words) array.push(word);
    return array;
}

std::vector<std::string> strings(const Json& array) {
    std::vector<std::string> words;
    for (const Json& word : array.as_array()) words.push_back(word.as_string());
    return words;
}

}  // namespace

Json KeeperOrder::to_json() const {
    Json bound = Json::array();
    for (const Bind& bind : binds) {
        bound.push(Json::object({{"source", bind.source}, {"target", bind.target}}));
    }
    Json json = Json::object({{"argv", strings(argv)},
                              {"environment", strings(environment)},
                              {"hostname", hostname},
                              {"hosts_file", hosts_file},
                              {"resolver_file", resolver_file},
                              {"binds", bound},
                              {"hidden_paths", strings(hidden_paths)}});
    if (network) json.set("network", network->to_json());
    if (remote_shell) {
        json.set("remote_shell", Json::object({{"address", remote_shell->address},
                                               {"secret", remote_shell->secret}}));
    }
    return json;
}

Json KeeperNetwork::to_json() const {
    Json json = Json::object(
        {{"bridge", bridge}, {"address", address}, {"prefix", prefix}, {"gateway", gateway}});
    if (peers) json.set("peers", strings(*peers));
    return json;
}

KeeperNetwork KeeperNetwork::from_json(const Json& json) {
    const int prefix = spec::int32_from(json.at("prefix"));
    if (prefix < 0 || prefix > kPrefixMax) {
        throw Error(ErrorCode::invalid_argument,
                    "prefix must be from 0 to 32, not " + std::to_string(prefix));
    }
    KeeperNetwork network{.bridge = json.at("bridge").as_string(),
                          .address = json.at("address").as_string(),
                          .prefix = prefix,
                          .gateway = json.at("gateway").as_string()};
    if (const Json* peers = json.find("peers")) network.peers = strings(*peers);
    return network;
}

KeeperOrder KeeperOrder::from_json(const Json& json) {
    KeeperOrder order;
    order.argv = strings(json.at("argv"));
    order.environment = strings(json.at("environment"));
    order.hostname = json.at("hostname").as_string();
    order.hosts_file = json.at("hosts_file").as_string();
    order.resolver_file = json.get_string("resolver_file");
    if (const Json* given = json.find("network")) order.network = KeeperNetwork::from_json(*given);
    if (const Json* given = json.find("remote_shell")) {
        order.remote_shell = {.address = given->at("address").as_string(),
                              .secret = given->at("secret").as_string()};
    }
    for (const Json& bind : json.at("binds").as_array()) {
        order.binds.push_back(
            {.source = bind.at("source").as_string(), .target = bind.at("target").as_string()});
    }
    order.hidden_paths = strings(json.at("hidden_paths"));
    return order;
}

Json Ending::to_json() const {
    return Json::object({{"version", 1},
                         {"exit_code", status.code},
                         {"signal", status.signal},
                         {"ended_at_ms", to_ms(at)},
                         {"failure", failure},
                         {"order_is_wrong", order_is_wrong},
                         {"stuck", stuck}});
}

Ending Ending::from_json(const Json& json) {
    return {.status = {.code = spec::int32_from(json.at("exit_code")),
                       .signal = spec::int32_from(json.at("signal"))},
            .at = time_from_ms(json.at("ended_at_ms").as_int()),
            .failure = json.get_string("failure"),
            .order_is_wrong = json.get_bool("order_is_wrong"),
            .stuck = json.get_bool("stuck")};
}

}  // namespace gruca::agent
