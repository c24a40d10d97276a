#include "service/api/node_calls.h"
#include "service/api/operations.h"

namespace gruca::service::api {

void poll_order(const Context& context, const Call& call, const Responder& responder) {
    const std::string node_id = call.request.at("node").as_string();
    require_caller_is(call, node_id);
    context.core.poll({.node_id = node_id,
                       .seen_version = call.request.get_int("seen_version"),
                       .on_order = [responder](const spec::NodeOrder& order) {
                           responder.answer(order.to_json());
                       }});
}

}  // namespace gruca::service::api
