#include "net/sigv4_claim.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "net/sigv4_canonical.h"
#include "net/url.h"

namespace gruca::net {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::size_t kDateCharacters = 16;  // "20150830T123600Z"
constexpr std::size_t kSignatureCharacters = 64;
constexpr std::size_t kSignedHeadersMax = 64;

SignatureRefusal malformed(std::string detail) {
    return {.fault = SignatureFault::malformed, .detail = std::move(detail)};
}

bool read_credential(std::string_view text, SignatureClaim& claim) {
    const std::vector<std::string> words = split(text, '/');
    if (words.size() != 5 || words[4] != "aws4_request") return false;
    claim.access_key = words[0];
    claim.day = words[1];
    claim.scope = {.region = words[2], .service = words[3]};
    return !claim.access_key.empty();
}

// Reads the three parts of an Authorization header.
bool read_authorization(std::string_view header, SignatureClaim& claim) {
    if (!header.starts_with(kAlgorithm)) return false;
    bool has_credential = false;
    for (const std::string& part : split(header.substr(kAlgorithm.size()), ',')) {
        const std::string_view field = trim(part);
        const std::size_t equals = field.find('=');
        if (equals == std::string_view::npos) return false;
        const std::string_view name = field.substr(0, equals);
        const std::string_view value = field.substr(equals + 1);
        if (name == "Credential") {
            if (!read_credential(value, claim)) return false;
            has_credential = true;
        } else if (name == "SignedHeaders") {
            claim.signed_headers = split(value, ';');
        } else if (name == "Signature") {
            claim.signature = value;
        } else {
            return false;
        }
    }
    return has_credential;
}

bool is_date(const std::string& text) {
    if (text.size() != kDateCharacters) return false;
    try {
        time_from_iso8601(text);
        return true;
    } catch (const Error&) {  // A date that cannot be read is an outcome here.
        return false;
    }
}

// An unsigned X-Amz-* header could be changed on the way; only the session token may be, because it
// is compared with the known one.
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

// What every claim must fulfil, wherever it stood.
std::variant<SignatureClaim, SignatureRefusal> complete(SignatureClaim claim,
                                                        const HttpRequest& request) {
    if (claim.signature.size() != kSignatureCharacters || claim.signed_headers.empty() ||
        claim.signed_headers.size() > kSignedHeadersMax) {
        return malformed("Signature or SignedHeaders are absent or of an impossible length");
    }
    if (!is_date(claim.date)) {
        return malformed("X-Amz-Date is absent or malformed: " + claim.date);
    }
    if (const auto fault = fault_of_signed_headers(request.headers, claim.signed_headers)) {
        return malformed(*fault);
    }
    if (!claim.date.starts_with(claim.day) || claim.day.size() != 8) {
        return malformed("the day of Credential is not that of X-Amz-Date");
    }
    return claim;
}

std::optional<std::string> header_that_occurs_twice(const Headers& headers) {
    for (const char* once :
         {"authorization", "host", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"}) {
        if (occurrences(headers, once) > 1) return once;
    }
    return std::nullopt;
}

// The fields of the query that are about the signature, or nothing when one occurs twice or the
// query cannot be decoded.
std::optional<std::map<std::string, std::string>> signing_fields(std::string_view query) {
    std::map<std::string, std::string> found;
    try {
        for (auto& [name, value] : parse_query(query)) {
            if (!name.starts_with("X-Amz-")) continue;
            if (!found.emplace(std::move(name), std::move(value)).second) return std::nullopt;
        }
    } catch (const Error&) {
        return std::nullopt;
    }
    return found;
}

// The signature itself is not part of what is signed.
HttpRequest without_signature(const HttpRequest& request) {
    std::string query;
    for (const std::string& field : split(request.query(), '&')) {
        const bool is_signature =
            percent_decode(field.substr(0, field.find('='))) == "X-Amz-Signature";
        if (!is_signature) query += (query.empty() ? "" : "&") + field;
    }
    return {.method = request.method,
            .target = std::string(request.path()) + "?" + query,
            .headers = request.headers};
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::size_t occurrences(const Headers& headers, std::string_view lower_name) {
    return static_cast<std::size_t>(std::count_if(
        headers.fields().begin(), headers.fields().end(),
        [&](const auto& field) { return same_header_name(field.first, lower_name); }));
}

std::variant<SignatureClaim, SignatureRefusal> claim_of_header(const HttpRequest& request) {
    const auto header = request.headers.find("authorization");
    if (!header) {
        return SignatureRefusal{.fault = SignatureFault::missing,
                                .detail = "the request has no Authorization header"};
    }
    if (const auto twice = header_that_occurs_twice(request.headers)) {
        return malformed("header occurs twice: " + *twice);
    }
    SignatureClaim claim;
    if (!read_authorization(*header, claim)) {
        return malformed(
            "Authorization must be AWS4-HMAC-SHA256 with Credential, SignedHeaders and Signature");
    }
    claim.date = request.headers.find("x-amz-date").value_or("");
    claim.session_token = request.headers.find("x-amz-security-token").value_or("");
    return complete(std::move(claim), request);
}

std::variant<SignatureClaim, SignatureRefusal> claim_of_query(const HttpRequest& request) {
    auto fields = signing_fields(request.query());
    if (!fields) return malformed("the query of the URL is malformed, or has an X-Amz-* twice");
    if (!fields->contains("X-Amz-Signature") && !fields->contains("X-Amz-Credential")) {
        return SignatureRefusal{.fault = SignatureFault::missing,
                                .detail = "the request is not signed"};
    }
    if (const auto twice = header_that_occurs_twice(request.headers)) {
        return malformed("header occurs twice: " + *twice);
    }
    for (const char* elsewhere : {"authorization", "x-amz-date", "x-amz-security-token"}) {
        if (!request.headers.find(elsewhere)) continue;
        return malformed(std::string("a presigned URL must not come with the header ") + elsewhere);
    }
    SignatureClaim claim;
    if ((*fields)["X-Amz-Algorithm"] != kAlgorithm ||
        !read_credential((*fields)["X-Amz-Credential"], claim)) {
        return malformed("X-Amz-Algorithm must be AWS4-HMAC-SHA256, and X-Amz-Credential whole");
    }
    claim.signed_headers = split((*fields)["X-Amz-SignedHeaders"], ';');
    claim.signature = (*fields)["X-Amz-Signature"];
    claim.date = (*fields)["X-Amz-Date"];
    claim.session_token = (*fields)["X-Amz-Security-Token"];
    const auto lifetime = parse_int((*fields)["X-Amz-Expires"]);
    if (!lifetime || *lifetime < 1 || *lifetime > kPresignedLifetimeMax.count()) {
        return malformed("X-Amz-Expires must be 1 to " +
                         std::to_string(kPresignedLifetimeMax.count()) + " seconds");
    }
    claim.lifetime = std::chrono::seconds(*lifetime);
    return complete(std::move(claim), request);
}

std::optional<SignatureRefusal> fault_of_time(const SignatureClaim& claim, TimePoint now) {
    const TimePoint signed_at = time_from_iso8601(claim.date);
    const bool is_early = signed_at - now > kClockSkewMax;
    const bool is_late = !claim.lifetime && now - signed_at > kClockSkewMax;
    if (is_early || is_late) {
        return SignatureRefusal{.fault = SignatureFault::skewed,
                                .detail = "the request was signed at " + claim.date +
                                          " and it is now " + iso8601_basic(now) +
                                          "; set the caller's clock right"};
    }
    if (claim.lifetime && now >= signed_at + *claim.lifetime) {
        return SignatureRefusal{.fault = SignatureFault::expired,
                                .detail = "the URL was good until " +
                                          iso8601(signed_at + *claim.lifetime) + " and it is now " +
                                          iso8601(now)};
    }
    return std::nullopt;
}

std::optional<SignatureRefusal> fault_of_signature(const SignatureClaim& claim,
                                                   const HttpRequest& request,
                                                   const std::string& payload_hash,
                                                   const KnownKey& key, TimePoint now) {
    if (!equal_in_constant_time(claim.session_token, key.session_token)) {
        return SignatureRefusal{.fault = SignatureFault::unknown_key,
                                .detail = "the session token is not this key's"};
    }
    std::string canonical;
    try {
        canonical = canonical_request(claim.lifetime ? without_signature(request) : request,
                                      claim.signed_headers, payload_hash,
                                      path_form_of(claim.scope.service));
    } catch (const Error& error) {  // A URL that cannot be decoded.
        return malformed(error.message());
    }
    const std::string expected = signature_of(key.secret_key, claim.date, claim.scope,
                                              string_to_sign(claim.date, claim.scope, canonical));
    if (!equal_in_constant_time(expected, claim.signature)) {
        return SignatureRefusal{
            .fault = SignatureFault::mismatch,
            .detail =
                "the signature is not the one this request should have; check the secret "
                "access key, and that nothing between changes Host, path or headers"};
    }
    if (key.expires && *key.expires <= now) {
        return SignatureRefusal{.fault = SignatureFault::credentials_ended,
                                .detail = "the credentials ended at " + iso8601(*key.expires)};
    }
    return std::nullopt;
}

}  // namespace gruca::net
