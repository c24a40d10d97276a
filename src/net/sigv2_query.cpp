#include "net/sigv2_query.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "net/sigv4_claim.h"
#include "net/url.h"

namespace gruca::net {
namespace {

// The fields of a query that version 2 signs, in order.
constexpr std::string_view kSubresources[] = {
    "acl",
    "cors",
    "delete",
    "lifecycle",
    "location",
    "logging",
    "notification",
    "object-lock",
    "partNumber",
    "policy",
    "replication",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "restore",
    "tagging",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
};

struct Field {
    std::string value;
    bool has_equals;
};
using Query = std::map<std::string, Field>;

// Nothing when a field occurs twice or cannot be decoded.
std::optional<Query> parse(std::string_view text) {
    Query query;
    try {
        for (const std::string& part : split(text, '&')) {
            if (part.empty()) continue;
            const std::size_t equals = std::min(part.find('='), part.size());
            const bool has_equals = equals < part.size();
            Field field{.value = has_equals ? percent_decode(part.substr(equals + 1)) : "",
                        .has_equals = has_equals};
            if (!query.emplace(percent_decode(part.substr(0, equals)), std::move(field)).second) {
                return std::nullopt;
            }
        }
    } catch (const Error&) {  // A URL that cannot be decoded is an outcome here.
        return std::nullopt;
    }
    return query;
}

bool is_subresource(const std::string& name) {
    return std::binary_search(std::begin(kSubresources), std::end(kSubresources), name);
}

// What is signed as if it were a header, though it may stand in the query.
bool is_header_in_query(const std::string& name) {
    return name == "content-md5" || name == "content-type" || name.starts_with("x-amz-");
}

std::string hmac_sha1_base64(std::string_view key, std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
    unsigned length = 0;
    const unsigned char* made =
        HMAC(EVP_sha1(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &length);
    CHECK(made != nullptr, "HMAC-SHA1 is not available");
    return base64(std::as_bytes(std::span(mac).first(length)));
}

std::string text_to_sign(const HttpRequest& head, const Query& query) {
    std::map<std::string, std::string> headers = {{"content-md5", ""}, {"content-type", ""}};
    for (const auto& [name, field] : query) {
        if (is_header_in_query(name)) headers[name] = field.value;
    }
    for (const auto& [field, value] : head.headers.fields()) {
        const std::string name = to_lower(field);
        if (is_header_in_query(name)) headers[name] = trim(value);
    }
    std::string text = head.method + "\n" + headers["content-md5"] + "\n" +
                       headers["content-type"] + "\n" + query.at("Expires").value + "\n";
    for (const auto& [name, value] : headers) {
        if (name.starts_with("x-amz-")) text.append(name).append(":").append(value).append("\n");
    }
    text += head.path();
    char mark = '?';
    for (const std::string_view name : kSubresources) {
        const auto found = query.find(std::string(name));
        if (found == query.end()) continue;
        text.append(1, mark).append(name);
        if (found->second.has_equals) text.append("=").append(found->second.value);
        mark = '&';
    }
    return text;
}

std::optional<std::string> fault_of_form(const HttpRequest& head, const Query& query) {
    for (const char* needed : {"AWSAccessKeyId", "Signature", "Expires"}) {
        if (!query.contains(needed)) return std::string("the URL has no ") + needed;
    }
    for (const auto& [name, field] : query) {
        const bool is_ours = name == "AWSAccessKeyId" || name == "Signature" || name == "Expires";
        if (!is_ours && !is_subresource(name) && !is_header_in_query(name)) {
            return "a URL signed with version 2 does not sign this field; sign with version 4: " +
                   name;
        }
    }
    for (const auto& [field, value] : head.headers.fields()) {
        const std::string name = to_lower(field);
        if (is_header_in_query(name) && occurrences(head.headers, name) > 1) {
            return "header occurs twice: " + name;
        }
    }
    return std::nullopt;
}

}  // namespace

bool has_v2_query(const HttpRequest& head) {
    const auto query = parse(head.query());
    return query && query->contains("AWSAccessKeyId");
}

VerifyS3Result verify_v2_query(
    const HttpRequest& head, TimePoint now,
    const std::function<std::optional<KnownKey>(const std::string& access_key)>& find_key) {
    const auto refuse = [](SignatureFault fault, std::string detail) {
        return VerifyS3Result{
            .caller = {}, .fault = fault, .detail = std::move(detail), .is_presigned = true};
    };
    const auto query = parse(head.query());
    if (!query) return refuse(SignatureFault::malformed, "the query of the URL is malformed");
    if (const auto fault = fault_of_form(head, *query)) {
        return refuse(SignatureFault::malformed, *fault);
    }
    const auto expires = parse_int(query->at("Expires").value);
    const auto now_s = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
    if (!expires || *expires > (now_s + kPresignedLifetimeMax + kClockSkewMax).count()) {
        return refuse(SignatureFault::malformed, "Expires must be at most seven days from now");
    }
    if (*expires <= now_s.count()) {
        return refuse(SignatureFault::expired,
                      "the URL's time is over and it is now " + iso8601(now));
    }
    const std::string& access_key = query->at("AWSAccessKeyId").value;
    const auto key = find_key(access_key);
    if (!key) {
        return refuse(SignatureFault::unknown_key, "nobody has this access key: " + access_key);
    }
    const auto token = query->find("x-amz-security-token");
    if (!equal_in_constant_time(token == query->end() ? "" : token->second.value,
                                key->session_token)) {
        return refuse(SignatureFault::unknown_key, "the session token is not this key's");
    }
    if (!equal_in_constant_time(hmac_sha1_base64(key->secret_key, text_to_sign(head, *query)),
                                query->at("Signature").value)) {
        return refuse(SignatureFault::mismatch,
                      "the signature is not the one this URL should have; check the secret access "
                      "key, and that method, path and headers are those that were signed");
    }
    if (key->expires && *key->expires <= now) {
        return refuse(SignatureFault::credentials_ended,
                      "the credentials ended at " + iso8601(*key->expires));
    }
    VerifyS3Result result{.caller = VerifiedCaller{.access_key = access_key,
                                                   .scope = {.region = "", .service = "s3"}}};
    result.is_presigned = true;
    return result;
}

}  // namespace gruca::net
