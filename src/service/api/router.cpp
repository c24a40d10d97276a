#include "service/api/router.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/boundary.h"
#include "base/log.h"
#include "base/text.h"
#include "net/sigv4.h"
#include "net/url.h"
#include "service/api/operations.h"

namespace gruca::service::api {
namespace {

enum class Who { admin, admin_or_job, node };
enum class Body { json, form, bytes };

using Handler = std::function<void(const Context&, const Call&, const Responder&)>;

Handler at_once(Outcome (*operation)(const Context&, const Call&)) {
    return [operation](const Context& context, const Call& call, const Responder& responder) {
        responder.answer(operation(context, call));
    };
}

struct Operation {
    std::string service;
    std::string name;
    Who who;
    Body body;
    Handler run;
};

const std::vector<Operation>& operations() {
    static const std::vector<Operation> table = {
        {"SageMaker", "CreateTrainingJob", Who::admin, Body::json, create_training_job},
        {"SageMaker", "DescribeTrainingJob", Who::admin_or_job, Body::json,
         at_once(describe_training_job)},
        {"SageMaker", "ListTrainingJobs", Who::admin, Body::json, at_once(list_training_jobs)},
        {"SageMaker", "StopTrainingJob", Who::admin, Body::json, stop_training_job},
        {"SageMaker", "AddTags", Who::admin, Body::json, add_tags},
        {"SageMaker", "ListTags", Who::admin, Body::json, at_once(list_tags)},
        {"SageMaker", "DeleteTags", Who::admin, Body::json, delete_tags},
        {"Logs_20140328", "DescribeLogGroups", Who::admin, Body::json,
         at_once(describe_log_groups)},
        {"Logs_20140328", "DescribeLogStreams", Who::admin, Body::json,
         at_once(describe_log_streams)},
        {"Logs_20140328", "GetLogEvents", Who::admin, Body::json, at_once(get_log_events)},
        {"Logs_20140328", "FilterLogEvents", Who::admin, Body::json, at_once(filter_log_events)},
        {"STS", "GetCallerIdentity", Who::admin_or_job, Body::form, at_once(get_caller_identity)},
        {"Gruca", "PollOrder", Who::node, Body::json, poll_order},
        {"Gruca", "ReportNode", Who::node, Body::json, report_node},
        {"Gruca", "DescribeNodes", Who::admin, Body::json, at_once(describe_nodes)},
        {"Gruca", "AppendLog", Who::node, Body::bytes, at_once(append_log)},
    };
    return table;
}

bool may(const Caller& caller, Who who) {
    switch (caller.kind) {
        case KeyKind::admin:
            return who != Who::node;
        case KeyKind::job:
            return who == Who::admin_or_job;
        case KeyKind::node:
            return who == Who::node;
    }
    return false;
}

// The name a service signs with; empty for one that we do not have.
std::string signing_name(const std::string& service) {
    if (service == "SageMaker") return "sagemaker";
    if (service == "Logs_20140328") return "logs";
    if (service == "STS") return "sts";
    if (service == "Gruca") return "gruca";
    return "";
}

Fault signature_fault(net::SignatureFault fault, const std::string& detail, bool json) {
    switch (fault) {
        case net::SignatureFault::missing:
            return json ? Fault{.code = "MissingAuthenticationTokenException",
                                .message = "Missing Authentication Token"}
                        : Fault{.code = "MissingAuthenticationToken",
                                .message = "Missing Authentication Token",
                                .status = 403};
        case net::SignatureFault::malformed:
            return {.code = "IncompleteSignature", .message = detail};
        case net::SignatureFault::unknown_key:
            return json ? Fault{.code = "UnrecognizedClientException",
                                .message = "The security token included in the request is invalid."}
                        : Fault{.code = "InvalidClientTokenId",
                                .message = "The security token included in the request is invalid.",
                                .status = 403};
        case net::SignatureFault::credentials_ended:
            return {.code = json ? "ExpiredTokenException" : "ExpiredToken",
                    .message = "The security token included in the request is expired.",
                    .status = json ? 400 : 403};
        case net::SignatureFault::skewed:
        case net::SignatureFault::expired:
            return json ? Fault{.code = "InvalidSignatureException", .message = detail}
                        : Fault{.code = "RequestExpired", .message = detail};
        case net::SignatureFault::no_payload:
        case net::SignatureFault::mismatch:
            break;
    }
    const std::string message =
        "The request signature we calculated does not match the signature you provided. Check your "
        "AWS Secret Access Key and signing method. Consult the service documentation for details.";
    return json ? Fault{.code = "InvalidSignatureException", .message = message}
                : Fault{.code = "SignatureDoesNotMatch", .message = message, .status = 403};
}

// What a body of this many values may cost in memory is some fifty times its own size.
constexpr std::ptrdiff_t kRequestValuesMax = 200'000;

Json parse_body(const Operation& operation, const net::HttpRequest& http) {
    if (operation.body != Body::json || trim(http.body).empty()) return Json::object();
    // Before each value but the first of a list stands one of these; those in texts count as well.
    const auto values = std::count_if(http.body.begin(), http.body.end(),
                                      [](char c) { return c == ',' || c == '[' || c == '{'; });
    if (values > kRequestValuesMax) {
        throw Error(ErrorCode::invalid_argument,
                    "the request has more than " + std::to_string(kRequestValuesMax) + " values");
    }
    Json request = Json::parse(http.body);
    if (request.is_object()) return request;
    throw Error(ErrorCode::invalid_argument, "the request is not a JSON object");
}

}  // namespace

// What a request wants, as far as it can be told without knowing who asks.
struct Router::Route {
    Protocol protocol = Protocol::query;
    std::string service;
    std::string operation;
};

namespace {

// Fills in the route. What speaks neither JSON nor forms went in by the door for objects.
template <class Route>
Route route_of(const net::HttpRequest& request) {
    Route route;
    if (const auto target = request.headers.find("X-Amz-Target")) {
        const std::size_t dot = std::min(target->find('.'), target->size());
        route.protocol = Protocol::json;
        route.service = target->substr(0, dot);
        route.operation = dot < target->size() ? target->substr(dot + 1) : "";
        return route;
    }
    try {
        std::string version;
        for (const auto& [name, value] : net::parse_query(request.body, true)) {
            if (name == "Action") route.operation = value;
            if (name == "Version") version = value;
        }
        if (version == "2011-06-15") route.service = "STS";
    } catch (const Error&) {  // A broken escape: no action can be read from it, so it has none.
    }
    return route;
}

Fault unknown_operation(Protocol protocol, const std::string& name) {
    if (protocol == Protocol::json) {
        return {.code = "UnknownOperationException",
                .message = "gruca does not have this operation: " + name};
    }
    return {.code = "InvalidAction",
            .message = "The action " + name + " is not valid for this endpoint."};
}

}  // namespace

void Router::handle(const net::HttpRequest& request, const net::HttpReply& reply) const {
    const std::string request_id = context_.random.uuid();
    const Route route = route_of<Route>(request);
    const Responder responder(reply, route.protocol, request_id);
    const auto error = run_guarded([&] {
        Caller caller;
        const Outcome refusal = authenticate(request, route, caller);
        if (std::holds_alternative<Fault>(refusal)) {
            responder.answer(refusal);
        } else {
            dispatch(request, route, std::move(caller), responder);
        }
    });
    if (!error) return;
    const Fault fault = fault_of(route.service, error->code(), error->message());
    if (fault.status == 500) {
        log_error("request {} ({}.{}) failed: {}", request_id, route.service, route.operation,
                  error->what());
        responder.answer(Fault{.code = fault.code,
                               .message = "The service failed on this request; its log has more "
                                          "under the request's id.",
                               .status = 500});
        return;
    }
    responder.answer(fault);
}

Outcome Router::authenticate(const net::HttpRequest& request, const Route& route,
                             Caller& caller) const {
    const bool json = route.protocol == Protocol::json;
    std::optional<KeyRecord> key;
    const net::VerifyResult result =
        net::verify(request, context_.clock.now(),
                    [&](const std::string& access_key) -> std::optional<net::KnownKey> {
                        key = keys_.find(access_key);
                        if (!key) return std::nullopt;
                        return net::KnownKey{.secret_key = key->secret_key,
                                             .session_token = key->session_token,
                                             .expires = key->expires};
                    });
    if (!result.caller) return signature_fault(result.fault, result.detail, json);
    const std::string expected = signing_name(route.service);
    if (!expected.empty() && result.caller->scope.service != expected) {
        Fault fault = signature_fault(net::SignatureFault::mismatch, "", json);
        fault.message = "Credential should be scoped to correct service: '" + expected + "'.";
        return fault;
    }
    caller = {.kind = key->kind, .owner = key->owner};
    return Json::object();
}

void Router::dispatch(const net::HttpRequest& request, const Route& route, Caller caller,
                      const Responder& responder) const {
    const auto& table = operations();
    const auto operation = std::find_if(table.begin(), table.end(), [&](const Operation& one) {
        return one.service == route.service && one.name == route.operation;
    });
    if (operation == table.end() || request.path() != "/" || request.method != "POST") {
        const std::string dot = route.service.empty() ? "" : ".";
        responder.answer(unknown_operation(route.protocol, route.service + dot + route.operation));
        return;
    }
    if (!may(caller, operation->who)) {
        responder.answer(Fault{.code = "AccessDeniedException",
                               .message = std::string("User: ") + name(caller.kind) + "/" +
                                          caller.owner + " is not authorized to perform: " +
                                          signing_name(operation->service) + ":" + operation->name,
                               .status = route.protocol == Protocol::json ? 400 : 403});
        return;
    }
    Call call{.service = route.service,
              .request_id = responder.request_id(),
              .caller = std::move(caller),
              .request = Json::object(),
              .http = request};
    try {
        call.request = parse_body(*operation, request);
    } catch (const Error& error) {  // AWS has a name of its own for this one.
        responder.answer(Fault{.code = "SerializationException", .message = error.message()});
        return;
    }
    operation->run(context_, call, responder);
}

}  // namespace gruca::service::api
