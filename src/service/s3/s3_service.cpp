#include "service/s3/s3_service.h"

#include <functional>

#include "base/boundary.h"
#include "base/log.h"
#include "base/text.h"
#include "service/s3/call.h"
#include "service/s3/known.h"
#include "service/s3/slow_answer.h"

namespace gruca::service::s3 {
namespace {

api::Fault fault_of_signature(const net::VerifyS3Result& result) {
    switch (result.fault) {
        case net::SignatureFault::missing:
            return {.code = "AccessDenied",
                    .message = "Access Denied: the request is not signed",
                    .status = 403};
        case net::SignatureFault::malformed:
            return {.code = result.is_presigned ? "AuthorizationQueryParametersError"
                                                : "AuthorizationHeaderMalformed",
                    .message = result.detail,
                    .status = 400};
        case net::SignatureFault::unknown_key:
            return {.code = "InvalidAccessKeyId",
                    .message = "The AWS Access Key Id you provided does not exist in our records.",
                    .status = 403};
        case net::SignatureFault::skewed:
            return {.code = "RequestTimeTooSkewed", .message = result.detail, .status = 403};
        case net::SignatureFault::expired:
            return {.code = "AccessDenied", .message = "Request has expired", .status = 403};
        case net::SignatureFault::credentials_ended:
            return {.code = "ExpiredToken", .message = result.detail, .status = 400};
        case net::SignatureFault::no_payload:
            return {.code = "InvalidRequest",
                    .message = "Missing required header for this request: x-amz-content-sha256",
                    .status = 400};
        case net::SignatureFault::mismatch:
            break;
    }
    return {.code = "SignatureDoesNotMatch",
            .message =
                "The request signature we calculated does not match the signature you "
                "provided. Check your key and signing method.",
            .status = 403};
}

net::HttpResponse response_of(const Refusal& refusal, const std::string& request_id) {
    const api::Fault& fault = refusal.fault;
    net::HttpResponse response{
        .status = fault.status,
        .headers = {{"Content-Type", "application/xml"}, {"x-amz-request-id", request_id}},
        .body = error_document(fault, request_id)};
    for (const auto& [name, value] : refusal.headers.fields()) response.headers.add(name, value);
    return response;
}

}  // namespace

bool is_for_objects(const net::HttpRequest& head) {
    if (head.headers.find("X-Amz-Target")) return false;
    const std::string type = to_lower(head.headers.find("Content-Type").value_or(""));
    return head.method != "POST" || head.path() != "/" ||
           !type.starts_with("application/x-www-form-urlencoded");
}

S3Service::S3Service(S3Options options, const KeyRing& keys, const Clock& clock, Random& random)
    : options_(std::move(options)),
      keys_(keys),
      clock_(clock),
      random_(random),
      store_(options_.store),
      uploads_(options_.uploads),
      forgotten_at_(clock.now()) {
    forget_old_uploads();
}

net::HttpResponse S3Service::busy() {
    return response_of({.fault = {.code = "SlowDown",
                                  .message = "Please reduce your request rate: too many transfers "
                                             "at once.",
                                  .status = 503}},
                       "-");
}

std::mutex& S3Service::mutex_of(const std::string& object) {
    return mutexes_[std::hash<std::string>()(object) % mutexes_.size()];
}

void S3Service::handle(net::HttpStream& stream) {
    const std::string request_id = random_.hex_id(16);
    std::optional<Refusal> refusal;
    bool is_known = false;
    const auto error = run_guarded([&] {
        try {
            const Request request(stream.head());
            Call call{.stream = stream, .request = request, .request_id = request_id};
            authenticate(call);
            is_known = true;
            dispatch(call);
        } catch (const Refusal& thrown) {
            refusal = thrown;
        }
    });
    if (error) {
        refusal = Refusal{.fault = fault_of_failure(*error)};
        if (refusal->fault.status >= 500) {
            log_error("request {} ({} {}) failed: {}", request_id, stream.head().method,
                      stream.head().path(), error->what());
        }
    }
    if (!refusal || stream.has_begun()) return;
    net::HttpResponse response = response_of(*refusal, request_id);
    is_known ? stream.send(std::move(response)) : stream.refuse(std::move(response));
}

void S3Service::answer_slowly(const Call& call, const std::function<std::string()>& make) {
    net::HttpResponse head = call.answer();
    head.headers.add("Content-Type", "application/xml");
    SlowAnswer answer(call.stream, clock_, std::move(head));
    s3::answer_slowly(answer, call.request_id, make);
}

void S3Service::authenticate(Call& call) const {
    std::optional<KeyRecord> key;
    net::VerifyS3Result result =
        net::verify_s3(call.stream.head(), clock_.now(),
                       [&](const std::string& access_key) -> std::optional<net::KnownKey> {
                           key = keys_.find(access_key);
                           if (!key) return std::nullopt;
                           return net::KnownKey{.secret_key = key->secret_key,
                                                .session_token = key->session_token,
                                                .expires = key->expires};
                       });
    if (!result.caller) throw Refusal{.fault = fault_of_signature(result)};
    if (key->kind == KeyKind::node) {
        refuse(403, "AccessDenied", "Access Denied: the key of a node is not for objects");
    }
    call.kind = key->kind;
    call.payload = std::move(result.payload);
    const auto owner = call.request.header("x-amz-expected-bucket-owner");
    if (owner && *owner != options_.account) {
        refuse(403, "AccessDenied", "Access Denied: the bucket's owner is " + options_.account);
    }
}

void S3Service::require_bucket(const std::string& bucket) const {
    if (!may_be_bucket(bucket) || !store_.has_directory(bucket + "/")) refuse_no_bucket(bucket);
}

void S3Service::dispatch(Call& call) {
    const Request& request = call.request;
    require_known(request);
    if (request.bucket().empty() && request.key().empty()) {
        if (request.method() == "GET" || request.method() == "HEAD") return list_buckets(call);
        refuse(405, "MethodNotAllowed", "The specified method is not allowed here.");
    }
    request.key().empty() ? dispatch_bucket(call) : dispatch_object(call);
}

void S3Service::dispatch_bucket(Call& call) {
    const Request& request = call.request;
    const std::string& method = request.method();
    if (method == "PUT") return create_bucket(call);
    require_bucket(request.bucket());
    if (method == "DELETE") return delete_bucket(call);
    if (method == "HEAD") {
        net::HttpResponse response = call.answer();
        response.headers.add("x-amz-bucket-region", options_.region);
        return call.send(std::move(response));
    }
    if (method == "POST" && request.asks("delete")) return delete_objects(call);
    if (method != "GET") {
        refuse(405, "MethodNotAllowed", "The specified method is not allowed on a bucket.");
    }
    if (request.asks("uploads")) return list_uploads(call);
    if (request.asks("location") || request.asks("versioning")) {
        XmlWriter xml;
        const bool location = request.asks("location");
        const char* const root = location ? "LocationConstraint" : "VersioningConfiguration";
        xml.open_root(root);
        std::string text = xml.take();
        // The first region has no name there, as it has none in AWS.
        if (location && options_.region != "us-east-1") text += options_.region;
        return call.send_xml(text + "</" + root + ">");
    }
    list_objects(call);
}

void S3Service::dispatch_object(Call& call) {
    const Request& request = call.request;
    const std::string& method = request.method();
    require_bucket(request.bucket());
    const bool of_upload = request.asks("uploadId");
    const bool is_copy = request.header("x-amz-copy-source").has_value();
    if (method == "GET" && of_upload) return list_parts(call);
    if (method == "GET" || method == "HEAD") return get_object(call);
    if (method == "PUT" && of_upload) return is_copy ? upload_part_copy(call) : upload_part(call);
    if (method == "PUT") return is_copy ? copy_object(call) : put_object(call);
    if (method == "POST" && of_upload) return complete_upload(call);
    if (method == "POST" && request.asks("uploads")) return create_upload(call);
    if (method == "DELETE") return of_upload ? abort_upload(call) : delete_object(call);
    refuse(405, "MethodNotAllowed", "The specified method is not allowed on an object.");
}

}  // namespace gruca::service::s3
