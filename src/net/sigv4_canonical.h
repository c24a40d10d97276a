// net/sigv4_canonical.h
//
// The arithmetic of Signature Version 4: the text that is signed, and the signature of a text.
// sign() and verify() are made of these; only they and their test need them.
//
// Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "net/sigv4.h"

namespace gruca::net {

// How the path of a request enters the signature.
struct PathForm {
    bool normalised = true;     // Dot segments and doubled slashes are removed.
    bool encoded_again = true;  // What is sent percent-encoded is encoded once more.
};
PathForm path_form_of(std::string_view service);  // s3 takes the path as it is.

// `signed_headers` are lower-case names in order. A header that occurs more than once has its
// values joined with commas; blanks around values go, runs of them become one.
std::string canonical_request(const HttpRequest& request,
                              const std::vector<std::string>& signed_headers,
                              std::string_view payload_hash, PathForm form);

// `date` is "20150830T123600Z"; its first eight characters stand in the scope.
std::string scope_text(std::string_view date, const SigningScope& scope);
std::string string_to_sign(std::string_view date, const SigningScope& scope,
                           std::string_view canonical);
// The derived key, as bytes; as secret as what it is made from.
std::string signing_key_of(std::string_view secret_key, std::string_view date,
                           const SigningScope& scope);
std::string hmac_hex(std::string_view key, std::string_view text);
std::string signature_of(std::string_view secret_key, std::string_view date,
                         const SigningScope& scope, std::string_view text);

}  // namespace gruca::net
