#include "net/sigv4.h"

#include <set>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "net/sigv4_canonical.h"
#include "net/sigv4_claim.h"

namespace gruca::net {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

bool is_signed_by_us(const std::string& lower_name) {
    return lower_name == "host" || lower_name == "content-type" || lower_name.starts_with("x-amz-");
}

VerifyResult refuse(SignatureFault fault, std::string detail) {
    return {.caller = {}, .fault = fault, .detail = std::move(detail)};
}

}  // namespace

void sign(HttpRequest& request, const Credentials& credentials, const SigningScope& scope,
          TimePoint now) {
    CHECK(request.headers.find("host").has_value(), "a request is signed after Host is set");
    const std::string date = iso8601_basic(now);
    request.headers.remove("Authorization");
    request.headers.set("X-Amz-Date", date);
    if (!credentials.session_token.empty()) {
        request.headers.set("X-Amz-Security-Token", credentials.session_token);
    }
    std::string payload_hash = sha256_hex(request.body);
    if (scope.service == "s3") {
        const bool is_unsigned = request.headers.find("X-Amz-Content-Sha256") == kUnsignedPayload;
        if (is_unsigned) payload_hash = kUnsignedPayload;
        request.headers.set("X-Amz-Content-Sha256", payload_hash);
    }
    std::set<std::string> names;
    for (const auto& [field, value] : request.headers.fields()) {
        if (is_signed_by_us(to_lower(field))) names.insert(to_lower(field));
    }
    const std::vector<std::string> signed_headers(names.begin(), names.end());
    const std::string canonical =
        canonical_request(request, signed_headers, payload_hash, path_form_of(scope.service));
    std::string list;
    for (const std::string& name : signed_headers) list += (list.empty() ? "" : ";") + name;
    request.headers.set("Authorization",
                        std::string(kAlgorithm) + " Credential=" + credentials.access_key + "/" +
                            scope_text(date, scope) + ", SignedHeaders=" + list + ", Signature=" +
                            signature_of(credentials.secret_key, date, scope,
                                         string_to_sign(date, scope, canonical)));
}

VerifyResult verify(
    const HttpRequest& request, TimePoint now,
    const std::function<std::optional<KnownKey>(const std::string& access_key)>& find_key) {
    const auto read = claim_of_header(request);
    if (const auto* refusal = std::get_if<SignatureRefusal>(&read)) {
        return refuse(refusal->fault, refusal->detail);
    }
    const auto& claim = std::get<SignatureClaim>(read);
    if (const auto fault = fault_of_time(claim, now)) return refuse(fault->fault, fault->detail);
    const auto key = find_key(claim.access_key);
    if (!key) {
        return refuse(SignatureFault::unknown_key,
                      "nobody has this access key: " + claim.access_key);
    }
    const std::string hash = sha256_hex(request.body);
    if (request.headers.find("x-amz-content-sha256").value_or(hash) != hash) {
        return refuse(SignatureFault::mismatch, "the body is not the one that was signed");
    }
    if (const auto fault = fault_of_signature(claim, request, hash, *key, now)) {
        return refuse(fault->fault, fault->detail);
    }
    return {.caller = VerifiedCaller{.access_key = claim.access_key, .scope = claim.scope}};
}

}  // namespace gruca::net
