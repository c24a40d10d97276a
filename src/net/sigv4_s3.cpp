#include "net/sigv4_s3.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "net/sigv2_query.h"
#include "net/sigv4_canonical.h"
#include "net/sigv4_claim.h"
#include "net/url.h"

namespace gruca::net {
namespace {

constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
constexpr std::size_t kHashCharacters = 64;
constexpr std::size_t kTrailersPromisedMax = 16;

struct NamedForm {
    std::string_view name;
    PayloadForm form;
};
constexpr NamedForm kForms[] = {
    {kUnsignedPayload, PayloadForm::not_signed},
    {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", PayloadForm::chunks},
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", PayloadForm::signed_chunks},
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", PayloadForm::signed_chunks_and_trailer},
};

std::optional<PayloadForm> form_of(const std::string& promised) {
    for (const auto& [name, form] : kForms) {
        if (promised == name) return form;
    }
    const bool is_hash = promised.size() == kHashCharacters &&
                         promised.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_hash) return PayloadForm::hashed;
    return std::nullopt;
}

// What stands for the body in the canonical request: the header, of a presigned URL also the query.
std::optional<std::string> promise_of(const HttpRequest& head, bool is_presigned) {
    if (auto header = head.headers.find("x-amz-content-sha256")) return header;
    if (!is_presigned) return std::nullopt;
    for (auto& [name, value] : parse_query(head.query())) {  // It was decoded before.
        if (name == "X-Amz-Content-Sha256") return value;
    }
    return std::string(kUnsignedPayload);
}

// Reads what the head says of a body in chunks; returns what is wrong with it.
std::optional<std::string> read_framing(const Headers& headers, PayloadRule& rule) {
    if (const auto text = headers.find("x-amz-decoded-content-length")) {
        const auto length = parse_int(*text);
        if (!length || *length < 0) return "X-Amz-Decoded-Content-Length must be a number";
        rule.decoded_bytes = static_cast<std::uint64_t>(*length);
    }
    const std::string names = headers.find("x-amz-trailer").value_or("");
    for (const std::string& name : split(names, ',')) {
        const std::string_view trimmed = trim(name);
        if (!trimmed.empty()) rule.trailers.push_back(to_lower(trimmed));
    }
    if (rule.trailers.size() > kTrailersPromisedMax) return "X-Amz-Trailer names too many";
    if (rule.form == PayloadForm::signed_chunks && !rule.trailers.empty()) {
        return "X-Amz-Trailer needs STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
    }
    return std::nullopt;
}

class Verification {
  public:
    Verification(const HttpRequest& head, TimePoint now) : head_(head), now_(now) {}

    VerifyS3Result run(
        const std::function<std::optional<KnownKey>(const std::string& access_key)>& find_key) {
        if (!read_claim() || !read_payload()) return result_;
        if (const auto fault = fault_of_time(claim_, now_))
            return refuse(fault->fault, fault->detail);
        const auto key = find_key(claim_.access_key);
        if (!key) {
            return refuse(SignatureFault::unknown_key,
                          "nobody has this access key: " + claim_.access_key);
        }
        if (const auto fault = fault_of_signature(claim_, head_, promised_, *key, now_)) {
            return refuse(fault->fault, fault->detail);
        }
        if (result_.payload.form >= PayloadForm::signed_chunks) {
            result_.payload.signing_key =
                signing_key_of(key->secret_key, claim_.date, claim_.scope);
            result_.payload.date = claim_.date;
            result_.payload.scope = scope_text(claim_.date, claim_.scope);
            result_.payload.seed_signature = claim_.signature;
        }
        result_.caller = VerifiedCaller{.access_key = claim_.access_key, .scope = claim_.scope};
        return result_;
    }

  private:
    VerifyS3Result refuse(SignatureFault fault, std::string detail) {
        return {.caller = {},
                .fault = fault,
                .detail = std::move(detail),
                .is_presigned = result_.is_presigned};
    }
    bool fail(SignatureFault fault, std::string detail) {
        result_ = refuse(fault, std::move(detail));
        return false;
    }

    bool read_claim() {
        const bool has_header = head_.headers.find("authorization").has_value();
        auto in_query = claim_of_query(head_);
        const auto* refused = std::get_if<SignatureRefusal>(&in_query);
        const bool has_query = refused == nullptr || refused->fault != SignatureFault::missing;
        result_.is_presigned = has_query;
        if (has_header && has_query) {
            return fail(SignatureFault::malformed,
                        "a request is signed in its header or in its URL, not in both");
        }
        auto read = has_query ? std::move(in_query) : claim_of_header(head_);
        refused = std::get_if<SignatureRefusal>(&read);
        if (refused != nullptr) return fail(refused->fault, refused->detail);
        claim_ = std::get<SignatureClaim>(std::move(read));
        if (claim_.scope.service == "s3") return true;
        return fail(SignatureFault::malformed, "the credential must be scoped to the service s3");
    }

    bool read_payload() {
        const auto promised = promise_of(head_, result_.is_presigned);
        if (!promised) return fail(SignatureFault::no_payload, "X-Amz-Content-Sha256 is missing");
        promised_ = *promised;
        const auto form = form_of(promised_);
        const bool is_url_of_chunks = result_.is_presigned && form >= PayloadForm::chunks;
        if (!form || is_url_of_chunks) {
            return fail(SignatureFault::malformed,
                        "X-Amz-Content-Sha256 is not one that is taken here: " + promised_);
        }
        result_.payload.form = *form;
        if (*form == PayloadForm::hashed) result_.payload.hash = promised_;
        if (*form < PayloadForm::chunks) return true;
        const auto fault = read_framing(head_.headers, result_.payload);
        return !fault || fail(SignatureFault::malformed, *fault);
    }

    const HttpRequest& head_;
    const TimePoint now_;
    SignatureClaim claim_;
    std::string promised_;
    VerifyS3Result result_;
};

}  // namespace

VerifyS3Result verify_s3(
    const HttpRequest& head, TimePoint now,
    const std::function<std::optional<KnownKey>(const std::string& access_key)>& find_key) {
    if (!head.headers.find("authorization") && has_v2_query(head)) {
        return verify_v2_query(head, now, find_key);
    }
    return Verification(head, now).run(find_key);
}

}  // namespace gruca::net
