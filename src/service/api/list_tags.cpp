#include "service/api/operations.h"
#include "service/api/request.h"

namespace gruca::service::api {

// All tags on one page: a job has at most fifty, and there are clients that do not ask for more.
Outcome list_tags(const Context& context, const Call& call) {
    RequestReader read(call.request);
    const std::string arn = read.text("ResourceArn", resource_arn_rule());
    read.text("NextToken", {.length_max = 8192});
    read.integer("MaxResults", {.min = 50, .otherwise = 50});
    read.finish();
    const JobPtr job = context.jobs.find_by_arn(arn);
    if (!job) return Fault{.code = "ValidationException", .message = "Resource does not exist."};
    Json tags = Json::array();
    for (const auto& [key, value] : job->tags) {
        tags.push(Json::object({{"Key", key}, {"Value", value}}));
    }
    return Json::object({{"Tags", std::move(tags)}});
}

}  // namespace gruca::service::api
