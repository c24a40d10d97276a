// net/url.h
//
// Percent-encoding, query strings, and the few URL shapes the product reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gruca::net {

// Everything but A-Z a-z 0-9 - _ . ~ becomes %XX; '/' too unless keep_slash.
std::string percent_encode(std::string_view text, bool keep_slash = false);
// Throws invalid_argument on a broken escape.
std::string percent_decode(std::string_view text);

// More than any request of ours or of S3 has; without a limit, a body of '&' alone would cost fifty
// times its size before anybody has seen a signature.
constexpr std::size_t kQueryFieldsMax = 1000;

// "a=1&b" -> {{"a","1"},{"b",""}}, decoded, '+' as a blank only when form_encoded. Throws
// invalid_argument on a broken escape and beyond kQueryFieldsMax.
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query,
                                                             bool form_encoded = false);

struct Origin {
    std::string host;
    std::uint16_t port = 0;
};
// "http://127.0.0.1:7717" or with a trailing '/'. Throws invalid_argument on anything else.
Origin parse_origin(std::string_view url);

struct S3Uri {
    std::string bucket;
    std::string key;  // May be empty; no leading '/'.
    std::string text() const { return "s3://" + bucket + "/" + key; }
    friend bool operator==(const S3Uri&, const S3Uri&) = default;
};
// "s3://bucket/key". Throws invalid_argument, quoting the text.
S3Uri parse_s3_uri(std::string_view uri);

}  // namespace gruca::net
