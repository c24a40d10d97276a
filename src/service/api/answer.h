// service/api/answer.h
//
// What an operation answers, before it is bytes: a JSON value, a document, or a fault with the name
// AWS gives it. And how each becomes an HTTP response in the caller's protocol.
//
// Pure functions; values.
#pragma once

#include <string>
#include <variant>

#include "base/error.h"
#include "base/json.h"
#include "net/http.h"

namespace gruca::service::api {

// How the caller speaks: JSON 1.1 (SageMaker, Logs, our own), or form and XML (STS).
enum class Protocol { json, query };

struct Fault {
    std::string code;  // "ValidationException"
    std::string message;
    int status = 400;

    friend bool operator==(const Fault&, const Fault&) = default;
};

struct Xml {
    std::string text;
};

using Outcome = std::variant<Json, Xml, Fault>;

net::HttpResponse encode(const Outcome& outcome, Protocol protocol, const std::string& request_id);

// The AWS name for a failure inside an operation of that service: "SageMaker", "Logs_20140328", …
Fault fault_of(const std::string& service, ErrorCode code, const std::string& message);

std::string xml_escaped(std::string_view text);

}  // namespace gruca::service::api
