#include "service/api/operations.h"
#include "service/api/request.h"

namespace gruca::service::api {

void add_tags(const Context& context, const Call& call, const Responder& responder) {
    RequestReader read(call.request);
    const std::string arn = read.text("ResourceArn", resource_arn_rule());
    read.require("Tags");
    read.finish();
    control::AddTags add{.request = "", .arn = arn, .tags = {}};
    add.tags = spec::decode_tags(call.request.at("Tags"), "tags");
    submit_command(context, call, responder, std::move(add), "ValidationException");
}

}  // namespace gruca::service::api
