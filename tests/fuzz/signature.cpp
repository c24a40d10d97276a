// Signatures on requests: lines of method and target, headers, an empty line, a body. Nobody comes
// in whose signature is not the one sign() makes, and a streamed body is judged the same in any
// pieces.

#include <algorithm>

#include "base/text.h"
#include "fuzz/request_text.h"
#include "fuzz/target.h"
#include "net/sigv4.h"
#include "net/sigv4_payload.h"
#include "net/sigv4_s3.h"

namespace net = gruca::net;

namespace {

const gruca::TimePoint kNow = gruca::time_from_iso8601("20150830T123600Z");
constexpr const char* kAccess = "AKIDEXAMPLE";
constexpr const char* kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

std::optional<net::KnownKey> find_key(const std::string& access_key) {
    if (access_key != kAccess) return std::nullopt;
    return net::KnownKey{.secret_key = kSecret};
}

std::optional<net::PayloadFault> judge(const net::PayloadRule& rule, std::string body,
                                       std::size_t piece_bytes) {
    net::SignedPayload payload(rule);
    const auto bytes = std::as_writable_bytes(std::span(body));
    for (std::size_t at = 0; at < bytes.size() && !payload.fault(); at += piece_bytes) {
        payload.take(bytes.subspan(at, std::min(piece_bytes, bytes.size() - at)));
    }
    return payload.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const net::HttpRequest request = gruca::fuzz::request_of(gruca::fuzz::text_of(data, size));
    const net::VerifyResult verified = net::verify(request, kNow, find_key);
    CHECK(!verified.caller || verified.caller->access_key == kAccess, "somebody came in");
    net::VerifyS3Result s3 = net::verify_s3(request, kNow, find_key);
    CHECK(!s3.caller || s3.caller->access_key == kAccess, "somebody came in");
    if (!s3.caller) {  // Still a body that could come with a head of any form.
        s3.payload.form = static_cast<net::PayloadForm>(size % 5);
    }
    const auto whole = judge(s3.payload, request.body, request.body.size() + 1);
    const auto pieces = judge(s3.payload, request.body, 1);
    CHECK(whole.has_value() == pieces.has_value(), "judged by its pieces");
    return 0;
}
