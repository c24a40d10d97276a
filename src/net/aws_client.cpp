#include "net/aws_client.h"

#include <algorithm>
#include <array>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "net/url.h"

namespace gruca::net {
namespace {

constexpr auto kBackoffFirst = std::chrono::milliseconds(50);
constexpr auto kBackoffMax = std::chrono::milliseconds(5000);
constexpr auto kCancelPoll = std::chrono::milliseconds(100);
constexpr int kDefectStatus = 500;

struct NamedCode {
    std::string_view aws;
    ErrorCode code;
};

// The names of AWS errors, and what a caller can do about each. What is not here goes by its
// status.
constexpr std::array kCodes = {
    NamedCode{"AccessDeniedException", ErrorCode::permission_denied},
    NamedCode{"ConflictException", ErrorCode::precondition_failed},
    NamedCode{"ExpiredToken", ErrorCode::permission_denied},
    NamedCode{"ExpiredTokenException", ErrorCode::permission_denied},
    NamedCode{"IncompleteSignature", ErrorCode::permission_denied},
    NamedCode{"InternalFailure", ErrorCode::internal},
    NamedCode{"InvalidAction", ErrorCode::invalid_argument},
    NamedCode{"InvalidClientTokenId", ErrorCode::permission_denied},
    NamedCode{"InvalidSignatureException", ErrorCode::permission_denied},
    NamedCode{"MissingAuthenticationToken", ErrorCode::permission_denied},
    NamedCode{"MissingAuthenticationTokenException", ErrorCode::permission_denied},
    NamedCode{"RequestExpired", ErrorCode::permission_denied},
    NamedCode{"ResourceInUse", ErrorCode::already_exists},
    NamedCode{"ResourceLimitExceeded", ErrorCode::resource_exhausted},
    NamedCode{"ResourceNotFound", ErrorCode::not_found},
    NamedCode{"ResourceNotFoundException", ErrorCode::not_found},
    NamedCode{"ServiceUnavailable", ErrorCode::unavailable},
    NamedCode{"SignatureDoesNotMatch", ErrorCode::permission_denied},
    NamedCode{"ThrottlingException", ErrorCode::unavailable},
    NamedCode{"UnknownOperationException", ErrorCode::invalid_argument},
    NamedCode{"UnrecognizedClientException", ErrorCode::permission_denied},
    NamedCode{"ValidationException", ErrorCode::invalid_argument},
};

ErrorCode code_of(std::string_view aws, int status) {
    const auto row = std::find_if(kCodes.begin(), kCodes.end(),
                                  [&](const NamedCode& named) { return named.aws == aws; });
    if (row != kCodes.end()) return row->code;
    if (status == kDefectStatus) return ErrorCode::internal;
    if (status > kDefectStatus) return ErrorCode::unavailable;
    return status == 403 ? ErrorCode::permission_denied : ErrorCode::invalid_argument;
}

// "com.amazonaws.x#ResourceInUse:http://..." -> "ResourceInUse"
std::string bare_name(std::string_view type) {
    if (const auto hash = type.find('#'); hash != std::string_view::npos) {
        type.remove_prefix(hash + 1);
    }
    return std::string(type.substr(0, type.find(':')));
}

std::string between(std::string_view text, std::string_view open, std::string_view close) {
    const std::size_t begin = text.find(open);
    if (begin == std::string_view::npos) return "";
    const std::size_t from = begin + open.size();
    const std::size_t end = text.find(close, from);
    return end == std::string_view::npos ? "" : std::string(text.substr(from, end - from));
}

struct AwsError {
    std::string name;
    std::string message;
};

// Reads an error's body, JSON or XML; whatever else arrives is shown as it is.
AwsError read_error(const HttpResponse& response) {
    if (response.body.find("<Code>") != std::string::npos) {
        return {.name = between(response.body, "<Code>", "</Code>"),
                .message = between(response.body, "<Message>", "</Message>")};
    }
    try {
        const Json body = Json::parse(response.body);
        const std::string type =
            body.get_string("__type", response.headers.find("x-amzn-errortype").value_or(""));
        return {.name = bare_name(type),
                .message = body.get_string("message", body.get_string("Message"))};
    } catch (const Error&) {  // Not JSON: a body that no AWS service sends, still worth showing.
        return {.name = "", .message = std::string(trim(response.body))};
    }
}

Error error_of(const HttpResponse& response) {
    AwsError read = read_error(response);
    const ErrorCode code = code_of(read.name, response.status);
    if (read.name.empty()) read.name = "HTTP status " + std::to_string(response.status);
    std::string message = read.name + ": " + read.message;
    const auto id = response.headers.find("x-amzn-RequestId");
    if (response.status >= kDefectStatus && id) message += " (request id " + *id + ")";
    return Error(code, message);
}

bool is_worth_another_try(const HttpResponse& response) {
    if (response.status < 400) return false;
    return response.status >= kDefectStatus ||
           code_of(read_error(response).name, response.status) == ErrorCode::unavailable;
}

std::string signing_name(const std::string& target) {
    const std::string prefix = to_lower(target.substr(0, target.find('.')));
    return prefix.substr(0, prefix.find('_'));  // "Logs_20140328" signs as "logs".
}

}  // namespace

struct AwsClient::Call {
    std::string service;
    Headers headers;
    std::string body;
    std::optional<std::chrono::milliseconds> timeout = {};
    std::function<bool()> cancelled = {};
};

AwsClient::AwsClient(AwsClientOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

Json AwsClient::call(const std::string& target, const Json& request,
                     std::optional<std::chrono::milliseconds> timeout,
                     const std::function<bool()>& cancelled) {
    const std::string answer =
        send({.service = signing_name(target),
              .headers = {{"Content-Type", "application/x-amz-json-1.1"}, {"X-Amz-Target", target}},
              .body = request.is_null() ? "{}" : request.dump(),
              .timeout = timeout,
              .cancelled = cancelled});
    return answer.empty() ? Json::object() : Json::parse(answer);
}

Json AwsClient::call_raw(const std::string& target, std::string body, const Headers& extra) {
    Call call{.service = signing_name(target),
              .headers = {{"Content-Type", "application/octet-stream"}, {"X-Amz-Target", target}},
              .body = std::move(body)};
    for (const auto& [name, value] : extra.fields()) call.headers.set(name, value);
    const std::string answer = send(std::move(call));
    return answer.empty() ? Json::object() : Json::parse(answer);
}

std::string AwsClient::call_form(const std::string& service, std::string form) {
    return send({.service = service,
                 .headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}},
                 .body = std::move(form)});
}

std::string AwsClient::send(Call call) {
    const Origin origin = parse_origin(options_.origin);
    HttpRequest request{.method = "POST",
                        .target = "/",
                        .headers = std::move(call.headers),
                        .body = std::move(call.body)};
    request.headers.set("Host", origin.host + ":" + std::to_string(origin.port));
    SystemRandom random;
    const auto give_up = clock_.steady_now() + options_.retry_for;
    for (auto backoff = kBackoffFirst;; backoff = std::min(backoff * 2, kBackoffMax)) {
        const bool last = clock_.steady_now() >= give_up;
        try {
            sign(request, options_.credentials,
                 {.region = options_.region, .service = call.service}, clock_.now());
            HttpResponse response =
                http_.send(options_.origin, request, call.timeout, call.cancelled);
            if (response.status < 300) return std::move(response.body);
            if (last || !is_worth_another_try(response)) throw error_of(response);
        } catch (const Error& error) {  // The retry policy.
            if (last || error.code() != ErrorCode::unavailable) throw;
        }
        // Somewhere in the second half of the back-off, so that many callers do not come at once.
        const auto half = static_cast<std::uint64_t>(backoff.count()) / 2;
        const std::chrono::milliseconds jittered(half + random.next_u64() % (half + 1));
        std::chrono::nanoseconds pause =
            std::min<std::chrono::nanoseconds>(jittered, give_up - clock_.steady_now());
        for (; pause.count() > 0; pause -= kCancelPoll) {
            if (call.cancelled && call.cancelled()) {
                throw Error(ErrorCode::cancelled, "the call was cancelled while waiting to retry");
            }
            std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, kCancelPoll));
        }
    }
}

}  // namespace gruca::net
