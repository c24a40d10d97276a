#include "service/s3/refusal.h"

#include "service/s3/xml.h"

namespace gruca::service::s3 {

void refuse(int status, std::string code, std::string message) {
    throw Refusal{
        .fault = {.code = std::move(code), .message = std::move(message), .status = status}};
}

void refuse_no_bucket(const std::string& bucket) {
    refuse(404, "NoSuchBucket", "The specified bucket does not exist: " + bucket);
}

void refuse_no_key(const std::string& key) {
    refuse(404, "NoSuchKey", "The specified key does not exist: " + key);
}

void refuse_argument(std::string message) {
    refuse(400, "InvalidArgument", std::move(message));
}

void refuse_precondition(const std::string& header) {
    refuse(412, "PreconditionFailed",
           "At least one of the pre-conditions you specified did not hold: " + header);
}

api::Fault fault_of_failure(const Error& error) {
    switch (error.code()) {
        case ErrorCode::invalid_argument:
            return {.code = "InvalidRequest", .message = error.message(), .status = 400};
        case ErrorCode::not_found:
            return {.code = "NoSuchKey", .message = error.message(), .status = 404};
        case ErrorCode::resource_exhausted:
            return {.code = "ServiceUnavailable",
                    .message = "The store has no room: " + error.message(),
                    .status = 503};
        case ErrorCode::unavailable:
            return {.code = "ServiceUnavailable", .message = error.message(), .status = 503};
        default:
            return {.code = "InternalError",
                    .message =
                        "The service failed on this request; its log has more under the "
                        "request's id.",
                    .status = 500};
    }
}

std::string error_document(const api::Fault& fault, const std::string& request_id) {
    XmlWriter xml;
    xml.open("Error");
    xml.add("Code", fault.code);
    xml.add("Message", fault.message);
    xml.add("RequestId", request_id);
    xml.close("Error");
    return xml.take();
}

}  // namespace gruca::service::s3
