#include "service/api/answer.h"

#include <fmt/format.h>

#include "base/text.h"

namespace gruca::service::api {
namespace {

std::string fault_document(const Fault& fault, const std::string& request_id) {
    return fmt::format(
        "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>{}</Type>"
        "<Code>{}</Code><Message>{}</Message></Error><RequestId>{}</RequestId></ErrorResponse>\n",
        fault.status < 500 ? "Sender" : "Receiver", xml_escaped(fault.code),
        xml_escaped(fault.message), request_id);
}

net::HttpResponse encode_fault(const Fault& fault, Protocol protocol,
                               const std::string& request_id) {
    net::HttpResponse response{.status = fault.status};
    if (protocol == Protocol::json) {
        response.headers.add("Content-Type", "application/x-amz-json-1.1");
        response.headers.add("x-amzn-ErrorType", fault.code);
        // SageMaker's own exceptions model "Message", everything else reads "message".
        const std::string message = repair_utf8(fault.message);  // It may quote the request.
        response.body =
            Json::object({{"__type", fault.code}, {"message", message}, {"Message", message}})
                .dump();
    } else {
        response.headers.add("Content-Type", "text/xml");
        response.body = fault_document(fault, request_id);
    }
    return response;
}

}  // namespace

net::HttpResponse encode(const Outcome& outcome, Protocol protocol, const std::string& request_id) {
    net::HttpResponse response;
    if (const auto* fault = std::get_if<Fault>(&outcome)) {
        response = encode_fault(*fault, protocol, request_id);
    } else if (const auto* xml = std::get_if<Xml>(&outcome)) {
        response.headers.add("Content-Type", "text/xml");
        response.body = xml->text;
    } else {
        response.headers.add("Content-Type", "application/x-amz-json-1.1");
        response.body = std::get<Json>(outcome).dump();
    }
    response.headers.add("x-amzn-RequestId", request_id);
    return response;
}

Fault fault_of(const std::string& service, ErrorCode code, const std::string& message) {
    const bool logs = service.starts_with("Logs_");
    switch (code) {
        case ErrorCode::invalid_argument:
        case ErrorCode::precondition_failed:
            return {.code = logs ? "InvalidParameterException" : "ValidationException",
                    .message = message};
        case ErrorCode::not_found:
            return {.code = logs ? "ResourceNotFoundException" : "ResourceNotFound",
                    .message = message};
        case ErrorCode::already_exists:
            return {.code = "ResourceInUse", .message = message};
        case ErrorCode::permission_denied:
            return {.code = "AccessDeniedException", .message = message};
        case ErrorCode::resource_exhausted:
            return {.code = "ResourceLimitExceeded", .message = message};
        case ErrorCode::unavailable:
        case ErrorCode::deadline_exceeded:
        case ErrorCode::cancelled:
            return {.code = "ServiceUnavailable", .message = message, .status = 503};
        case ErrorCode::data_loss:
        case ErrorCode::internal:
            break;
    }
    return {.code = "InternalFailure", .message = message, .status = 500};
}

std::string xml_escaped(std::string_view text) {
    std::string escaped;
    for (const char c : repair_utf8(text)) {
        switch (c) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            case '\n':
            case '\r':
            case '\t':  // As they are, readers would make blanks of them, or nothing.
                escaped += "&#" + std::to_string(static_cast<int>(c)) + ";";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    escaped += "\xef\xbf\xbd";
                } else {
                    escaped += c;
                }
        }
    }
    return escaped;
}

}  // namespace gruca::service::api
