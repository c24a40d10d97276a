#include "service/api/log_streams.h"
#include "service/api/operations.h"

namespace gruca::service::api {

// There is one group, there from the start.
Outcome describe_log_groups(const Context& context, const Call& call) {
    RequestReader read(call.request);
    const TextRule name{.length_min = 1, .length_max = 512, .pattern = "^[\\.\\-_/#A-Za-z0-9]+$"};
    const std::string prefix = read.text("logGroupNamePrefix", name);
    const std::string part = read.text("logGroupNamePattern", name);
    read.integer("limit", {.min = 1, .max = 50, .otherwise = 50});
    read.finish();
    Json groups = Json::array();
    if (kLogGroup.starts_with(prefix) && kLogGroup.find(part) != std::string_view::npos) {
        groups.push(Json::object({{"logGroupName", kLogGroup},
                                  {"creationTime", 0},
                                  {"metricFilterCount", 0},
                                  {"arn", group_arn(context.account) + ":*"},
                                  {"logGroupArn", group_arn(context.account)},
                                  {"logGroupClass", "STANDARD"},
                                  {"storedBytes", 0}}));
    }
    return Json::object({{"logGroups", std::move(groups)}});
}

}  // namespace gruca::service::api
