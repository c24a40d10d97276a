// service/api/node_calls.h
//
// What the three calls of an agent share: a node's key speaks for that node only.
#pragma once

#include <string>

#include "service/api/call.h"

namespace gruca::service::api {

// Throws permission_denied unless the caller is that node.
void require_caller_is(const Call& call, const std::string& node_id);

// The node's place; throws not_found when its job has ended or never was.
NodeOnBoard require_node(const Context& context, const std::string& node_id);

LogName log_of(const NodeOnBoard& node);

}  // namespace gruca::service::api
