// net/sigv4_claim.h
//
// What a request says of its own signature, in the Authorization header or in the query of a
// presigned URL, and whether it is true. verify() and verify_s3() are made of these.
//
// Pure functions, thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/sigv4.h"

namespace gruca::net {

struct SignatureClaim {
    std::string access_key;
    std::string day;   // "20150830"
    std::string date;  // "20150830T123600Z"
    SigningScope scope;
    std::vector<std::string> signed_headers;
    std::string signature;
    std::string session_token;
    std::optional<std::chrono::seconds> lifetime;  // Only a presigned URL has one.
};

struct SignatureRefusal {
    SignatureFault fault;
    std::string detail;
};

// Well-formed and complete, or refused; time and key are not looked at yet.
std::variant<SignatureClaim, SignatureRefusal> claim_of_header(const HttpRequest& request);
std::variant<SignatureClaim, SignatureRefusal> claim_of_query(const HttpRequest& request);

std::optional<SignatureRefusal> fault_of_time(const SignatureClaim& claim, TimePoint now);

// The claim, held against the key. `payload_hash` is what stands for the body.
std::optional<SignatureRefusal> fault_of_signature(const SignatureClaim& claim,
                                                   const HttpRequest& request,
                                                   const std::string& payload_hash,
                                                   const KnownKey& key, TimePoint now);

bool equal_in_constant_time(std::string_view a, std::string_view b);
std::size_t occurrences(const Headers& headers, std::string_view lower_name);

}  // namespace gruca::net
