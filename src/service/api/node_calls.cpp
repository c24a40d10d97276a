#include "service/api/node_calls.h"

#include "base/error.h"

namespace gruca::service::api {

void require_caller_is(const Call& call, const std::string& node_id) {
    if (call.caller.kind == KeyKind::node && call.caller.owner == node_id) return;
    throw Error(ErrorCode::permission_denied, "a node's key speaks for that node only: " + node_id);
}

NodeOnBoard require_node(const Context& context, const std::string& node_id) {
    if (auto node = context.jobs.find_node(node_id)) return *node;
    throw Error(ErrorCode::not_found, "no running job has this node: " + node_id);
}

LogName log_of(const NodeOnBoard& node) {
    return {.job = node.job->spec.name, .host = node.node().host};
}

}  // namespace gruca::service::api
