// service/api/operations.h
//
// Every operation the service offers, a function each, in a file of its name. An operation decodes,
// asks, and encodes; it decides nothing that control decides. A failure is thrown; a fault whose
// AWS name differs from that of its code is returned.
#pragma once

#include "service/api/call.h"

namespace gruca::service::api {

// SageMaker
void create_training_job(const Context& context, const Call& call, const Responder& responder);
void stop_training_job(const Context& context, const Call& call, const Responder& responder);
void add_tags(const Context& context, const Call& call, const Responder& responder);
void delete_tags(const Context& context, const Call& call, const Responder& responder);
Outcome describe_training_job(const Context& context, const Call& call);
Outcome list_training_jobs(const Context& context, const Call& call);
Outcome list_tags(const Context& context, const Call& call);

// CloudWatch Logs
Outcome describe_log_groups(const Context& context, const Call& call);
Outcome describe_log_streams(const Context& context, const Call& call);
Outcome get_log_events(const Context& context, const Call& call);
Outcome filter_log_events(const Context& context, const Call& call);

// STS
Outcome get_caller_identity(const Context& context, const Call& call);

// Ours: docs/formats/http-node-protocol.md
void poll_order(const Context& context, const Call& call, const Responder& responder);
void report_node(const Context& context, const Call& call, const Responder& responder);
Outcome append_log(const Context& context, const Call& call);
Outcome describe_nodes(const Context& context, const Call& call);

// Hands a command to the core and answers with what control replies. `not_found` is the AWS name
// for that failure where it is not the usual one.
void submit_command(const Context& context, const Call& call, const Responder& responder,
                    control::Input input, const std::string& not_found = "ResourceNotFound");

Json epoch_seconds(TimePoint time);  // With milliseconds as the fraction.

}  // namespace gruca::service::api
