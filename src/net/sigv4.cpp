#include "net/sigv4.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "net/sigv4_canonical.h"

namespace gruca::net {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
constexpr std::size_t kDateCharacters = 16;  // "20150830T123600Z"
constexpr std::size_t kSignatureCharacters = 64;
constexpr std::size_t kSignedHeadersMax = 64;

bool equal_in_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool is_signed_by_us(const std::string& lower_name) {
    return lower_name == "host" || lower_name == "content-type" || lower_name.starts_with("x-amz-");
}

// The three parts of an Authorization header, taken apart.
struct Authorization {
    std::string access_key;
    std::string day;
    SigningScope scope;
    std::vector<std::string> signed_headers;
    std::string signature;
};

std::optional<Authorization> parse_authorization(std::string_view header) {
    if (!header.starts_with(kAlgorithm)) return std::nullopt;
    Authorization parsed;
    for (const std::string& part : split(header.substr(kAlgorithm.size()), ',')) {
        const std::string_view field = trim(part);
        const std::size_t equals = field.find('=');
        if (equals == std::string_view::npos) return std::nullopt;
        const std::string_view name = field.substr(0, equals);
        const std::string_view value = field.substr(equals + 1);
        if (name == "Credential") {
            const std::vector<std::string> words = split(value, '/');
            if (words.size() != 5 || words[4] != "aws4_request") return std::nullopt;
            parsed.access_key = words[0];
            parsed.day = words[1];
            parsed.scope = {.region = words[2], .service = words[3]};
        } else if (name == "SignedHeaders") {
            parsed.signed_headers = split(value, ';');
        } else if (name == "Signature") {
            parsed.signature = value;
        } else {
            return std::nullopt;
        }
    }
    const bool complete = !parsed.access_key.empty() && !parsed.signed_headers.empty() &&
                          parsed.signature.size() == kSignatureCharacters &&
                          parsed.signed_headers.size() <= kSignedHeadersMax;
    if (!complete) return std::nullopt;
    return parsed;
}

VerifyResult refuse(SignatureFault fault, std::string detail) {
    return {.caller = {}, .fault = fault, .detail = std::move(detail)};
}

std::size_t occurrences(const Headers& headers, std::string_view lower_name) {
    return static_cast<std::size_t>(
        std::count_if(headers.fields().begin(), headers.fields().end(),
                      [&](const auto& field) { return to_lower(field.first) == lower_name; }));
}

// What is wrong with the list of signed headers, or nothing. An unsigned X-Amz-* header could be
// changed on the way; only the session token may be, because it is compared with the known one.
std::optional<std::string> fault_of_signed_headers(const Headers& headers,
                                                   const std::vector<std::string>& names) {
    const std::set<std::string> listed(names.begin(), names.end());
    if (listed.size() != names.size()) return "a header is listed twice in SignedHeaders";
    if (!std::is_sorted(names.begin(), names.end())) return "SignedHeaders are not in order";
    if (!listed.contains("host")) return "'Host' must be a signed header";
    for (const std::string& name : names) {
        if (occurrences(headers, name) == 0) return "signed header is not in the request: " + name;
    }
    for (const auto& [field, value] : headers.fields()) {
        const std::string name = to_lower(field);
        const bool must = name.starts_with("x-amz-") && name != "x-amz-security-token";
        if (must && !listed.contains(name)) return "header is present but not signed: " + name;
    }
    return std::nullopt;
}

std::optional<TimePoint> parse_date(const std::string& text) {
    if (text.size() != kDateCharacters) return std::nullopt;
    try {
        return time_from_iso8601(text);
    } catch (const Error&) {  // A date that cannot be read is an outcome here.
        return std::nullopt;
    }
}

// The payload hash that must stand in the canonical request, or nothing when the body is not the
// one the header promises.
std::optional<std::string> payload_hash_of(const HttpRequest& request, bool is_s3) {
    const auto promised = request.headers.find("x-amz-content-sha256");
    if (is_s3 && promised == kUnsignedPayload) return promised;
    std::string actual = sha256_hex(request.body);
    if (promised && *promised != actual) return std::nullopt;
    return actual;
}

VerifyResult verify_with_key(const HttpRequest& request, const Authorization& authorization,
                             const std::string& date, const KnownKey& key, TimePoint now) {
    const std::string token = request.headers.find("x-amz-security-token").value_or("");
    if (!equal_in_constant_time(token, key.session_token)) {
        return refuse(SignatureFault::unknown_key, "the session token is not this key's");
    }
    const auto hash = payload_hash_of(request, authorization.scope.service == "s3");
    if (!hash) return refuse(SignatureFault::mismatch, "the body is not the one that was signed");
    std::string canonical;
    try {
        canonical = canonical_request(request, authorization.signed_headers, *hash,
                                      path_form_of(authorization.scope.service));
    } catch (const Error& error) {  // A URL that cannot be decoded.
        return refuse(SignatureFault::malformed, error.message());
    }
    const std::string expected = signature_of(key.secret_key, date, authorization.scope,
                                              string_to_sign(date, authorization.scope, canonical));
    if (!equal_in_constant_time(expected, authorization.signature)) {
        return refuse(SignatureFault::mismatch,
                      "the signature is not the one this request should have; check the secret "
                      "access key, and that nothing between changes Host, path or headers");
    }
    if (key.expires && *key.expires <= now) {
        return refuse(SignatureFault::expired, "the credentials ended at " + iso8601(*key.expires));
    }
    return {.caller = VerifiedCaller{.access_key = authorization.access_key,
                                     .scope = authorization.scope}};
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
    const auto header = request.headers.find("authorization");
    if (!header) return refuse(SignatureFault::missing, "the request has no Authorization header");
    for (const char* once :
         {"authorization", "host", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"}) {
        if (occurrences(request.headers, once) > 1) {
            return refuse(SignatureFault::malformed, std::string("header occurs twice: ") + once);
        }
    }
    const auto authorization = parse_authorization(*header);
    if (!authorization) {
        return refuse(SignatureFault::malformed,
                      "Authorization must be AWS4-HMAC-SHA256 with Credential, SignedHeaders and "
                      "Signature");
    }
    const std::string date = request.headers.find("x-amz-date").value_or("");
    const auto signed_at = parse_date(date);
    if (!signed_at) {
        return refuse(SignatureFault::malformed, "X-Amz-Date is absent or malformed: " + date);
    }
    if (const auto fault =
            fault_of_signed_headers(request.headers, authorization->signed_headers)) {
        return refuse(SignatureFault::malformed, *fault);
    }
    if (!date.starts_with(authorization->day) || authorization->day.size() != 8) {
        return refuse(SignatureFault::malformed, "the day of Credential is not that of X-Amz-Date");
    }
    if (std::chrono::abs(now - *signed_at) > kClockSkewMax) {
        return refuse(SignatureFault::expired, "the request was signed at " + date +
                                                   " and it is now " + iso8601_basic(now) +
                                                   "; set the caller's clock right");
    }
    const auto key = find_key(authorization->access_key);
    if (!key) {
        return refuse(SignatureFault::unknown_key,
                      "nobody has this access key: " + authorization->access_key);
    }
    return verify_with_key(request, *authorization, date, *key, now);
}

}  // namespace gruca::net
