#include "base/error.h"
#include "base/text.h"
#include "service/api/node_calls.h"
#include "service/api/operations.h"

namespace gruca::service::api {

Outcome append_log(const Context& context, const Call& call) {
    const std::string node_id = call.http.headers.find("x-gruca-node").value_or("");
    require_caller_is(call, node_id);
    const auto offset = parse_int(call.http.headers.find("x-gruca-offset").value_or(""));
    if (!offset || *offset < 0) {
        throw Error(ErrorCode::invalid_argument, "x-gruca-offset must be a number of bytes");
    }
    const LogName log = log_of(require_node(context, node_id));
    const std::uint64_t size = context.logs.append_if_idle(log, static_cast<std::uint64_t>(*offset),
                                                   call.http.body, context.clock.now());
    // The node frees what it is told is here.
    if (call.http.headers.find("x-gruca-sync")) context.logs.sync_if_idle(log);
    return Json::object({{"size", size}});
}

}  // namespace gruca::service::api
