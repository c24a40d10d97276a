#include "service/api/node_calls.h"
#include "service/api/operations.h"

namespace gruca::service::api {

void report_node(const Context& context, const Call& call, const Responder& responder) {
    spec::NodeReport report = spec::NodeReport::from_json(call.request);
    require_caller_is(call, report.node_id);
    const NodeOnBoard node = require_node(context, report.node_id);
    // It may forget its log once we say that we know of its end, and adds nothing to it after this.
    if (report.given_up || report.phase == spec::NodePhase::uploaded) {
        context.logs.sync(log_of(node));
    }
    submit_command(context, call, responder, control::NodeReported{std::move(report)});
}

}  // namespace gruca::service::api
