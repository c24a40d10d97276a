#include "service/api/operations.h"
#include "service/api/request.h"

namespace gruca::service::api {
namespace {

constexpr std::size_t kKeysMax = 50;

}  // namespace

void delete_tags(const Context& context, const Call& call, const Responder& responder) {
    RequestReader read(call.request);
    control::DeleteTags remove{.request = "", .arn = "", .keys = {}};
    remove.arn = read.text("ResourceArn", resource_arn_rule());
    remove.keys =
        read.texts("TagKeys", 1, kKeysMax, {.length_min = 1, .length_max = 128, .required = true});
    read.finish();
    submit_command(context, call, responder, std::move(remove), "ValidationException");
}

}  // namespace gruca::service::api
