// net/sigv4_s3.h
//
// Signatures of requests for objects. They differ from the other services': a URL may be signed
// (presigned), the body need not be, and what the signature says of the body is checked while it
// streams. So a request is verified in two steps: verify_s3 by the head alone, SignedPayload
// (net/sigv4_payload.h) with what verify_s3 said of the body.
//
// Pure functions of their arguments, thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/sigv4.h"

namespace gruca::net {

// What a signature says of the body, by X-Amz-Content-Sha256.
enum class PayloadForm {
    hashed,         // "<64 hex>": the body's SHA-256.
    not_signed,     // "UNSIGNED-PAYLOAD", and presigned URLs.
    chunks,         // "STREAMING-UNSIGNED-PAYLOAD-TRAILER": aws-chunked, not signed.
    signed_chunks,  // "STREAMING-AWS4-HMAC-SHA256-PAYLOAD": aws-chunked, each one signed.
    signed_chunks_and_trailer  // "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
};

// Everything that is needed to check a body. Holds a derived key: never for a log.
struct PayloadRule {
    PayloadForm form = PayloadForm::not_signed;
    std::string hash = {};  // When hashed.
    // When in chunks: X-Amz-Decoded-Content-Length, and the names in X-Amz-Trailer, lower case.
    std::optional<std::uint64_t> decoded_bytes = {};
    std::vector<std::string> trailers = {};
    // When signed in chunks.
    std::string signing_key = {};
    std::string date = {};
    std::string scope = {};
    std::string seed_signature = {};
};

struct VerifyS3Result {
    std::optional<VerifiedCaller> caller;  // Set exactly when the head is genuine.
    SignatureFault fault = SignatureFault::missing;
    std::string detail = {};  // For the error message; never holds a secret.
    PayloadRule payload = {};
    bool is_presigned = false;  // Also of a refusal: what a fault is called depends on it.
};

// `head` needs no body, and none is looked at. The credential must be scoped to the service s3.
// Signed URLs are taken in version 4 and, since boto3 still makes them by default, in the query
// form of version 2. A request with two signatures is malformed. In every form an X-Amz-* header
// that is present must be signed.
VerifyS3Result verify_s3(
    const HttpRequest& head, TimePoint now,
    const std::function<std::optional<KnownKey>(const std::string& access_key)>& find_key);

}  // namespace gruca::net
