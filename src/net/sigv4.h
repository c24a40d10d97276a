// net/sigv4.h
//
// AWS Signature Version 4, both directions. Source: "Signature Version 4 signing process" of the
// AWS General Reference; held against Amazon's published test vectors in sigv4_test.cpp.
//
// Every caller of the service signs this way: people with the admin key, agents with their node's
// key, jobs with temporary credentials. Pure functions of their arguments; time is an argument.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/http.h"

namespace gruca::net {

struct Credentials {
    std::string access_key;
    std::string secret_key;
    std::string session_token = {};  // Only temporary credentials have one.
};

struct SigningScope {
    std::string region;
    std::string service;  // "sagemaker", "logs", "sts", "s3"; "gruca" for our own operations.
};

// Adds X-Amz-Date, X-Amz-Security-Token (with a session token), X-Amz-Content-Sha256 (for s3) and
// Authorization. The Host header must be there already. Signs host, content-type and every x-amz-*.
void sign(HttpRequest& request, const Credentials& credentials, const SigningScope& scope,
          TimePoint now);

enum class SignatureFault {
    missing,            // The request is not signed.
    malformed,          // Not SigV4, or a part is missing, or a header is not signed that must be.
    unknown_key,        // Nobody has this access key, or the session token is wrong.
    skewed,             // X-Amz-Date is more than kClockSkewMax from now.
    expired,            // A presigned URL's time is over. Only of verify_s3.
    credentials_ended,  // The signature is right, and the key's own time is over.
    no_payload,         // X-Amz-Content-Sha256 is missing. Only of verify_s3.
    mismatch,           // The signature is not the one this request should have.
};

constexpr std::chrono::minutes kClockSkewMax{15};
constexpr std::chrono::seconds kPresignedLifetimeMax = std::chrono::hours(7 * 24);

struct VerifiedCaller {
    std::string access_key;
    SigningScope scope;
};

struct VerifyResult {
    std::optional<VerifiedCaller> caller;  // Set exactly when the request is genuine.
    SignatureFault fault = SignatureFault::missing;
    std::string detail = {};  // For the error message; never holds a secret.
};

// What the service knows of an access key. `expires` empty: never.
struct KnownKey {
    std::string secret_key;
    std::string session_token = {};
    std::optional<TimePoint> expires = {};
};

// For every service but s3 (net/sigv4_s3.h): the signature stands in the header and covers the
// whole body. URLs that are signed, and bodies that are not, are refused. Compares in constant
// time. The region is not checked: against an endpoint of their own, clients sign with whatever
// region they are configured for.
VerifyResult verify(
    const HttpRequest& request, TimePoint now,
    const std::function<std::optional<KnownKey>(const std::string& access_key)>& find_key);

std::string sha256_hex(std::string_view bytes);

}  // namespace gruca::net
