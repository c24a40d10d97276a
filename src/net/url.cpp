#include "net/url.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/percent.h"
#include "base/text.h"

namespace gruca::net {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";
constexpr std::string_view kHttpScheme = "http://";
constexpr std::string_view kS3Scheme = "s3://";

bool is_unreserved(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

std::string decode_form(std::string_view text, bool form_encoded) {
    if (!form_encoded) return percent_decode(text);
    std::string blanks(text);
    for (char& c : blanks) {
        if (c == '+') c = ' ';
    }
    return percent_decode(blanks);
}

}  // namespace

std::string percent_encode(std::string_view text, bool keep_slash) {
    std::string encoded;
    encoded.reserve(text.size());
    for (const char c : text) {
        if (is_unreserved(c) || (keep_slash && c == '/')) {
            encoded.push_back(c);
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        encoded.push_back('%');
        encoded.push_back(kHexDigits[byte >> 4]);
        encoded.push_back(kHexDigits[byte & 15]);
    }
    return encoded;
}

std::string percent_decode(std::string_view text) {
    auto decoded = percent_decoded(text);
    if (!decoded) {
        throw Error(ErrorCode::invalid_argument,
                    "broken percent escape in URL: " + std::string(text.substr(0, 100)));
    }
    return std::move(*decoded);
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query,
                                                             bool form_encoded) {
    std::vector<std::pair<std::string, std::string>> fields;
    while (!query.empty()) {
        const std::string_view part = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(part.size() + 1, query.size()));
        if (part.empty()) continue;
        if (fields.size() == kQueryFieldsMax) {
            throw Error(
                ErrorCode::invalid_argument,
                "a query or form has more than " + std::to_string(kQueryFieldsMax) + " fields");
        }
        const std::size_t equals = std::min(part.find('='), part.size());
        const std::string_view name = part.substr(0, equals);
        const std::string_view value = part.substr(std::min(equals + 1, part.size()));
        fields.emplace_back(decode_form(name, form_encoded), decode_form(value, form_encoded));
    }
    return fields;
}

Origin parse_origin(std::string_view url) {
    const auto refuse = [&] {
        return Error(ErrorCode::invalid_argument,
                     "not an address of the form http://host:port: " + std::string(url));
    };
    if (!url.starts_with(kHttpScheme)) throw refuse();
    std::string_view rest = url.substr(kHttpScheme.size());
    if (rest.ends_with('/')) rest.remove_suffix(1);
    const std::size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos || colon == 0) throw refuse();
    const std::string_view host = rest.substr(0, colon);
    for (const char c : host) {
        if (!is_unreserved(c)) throw refuse();
    }
    const auto port = parse_int(rest.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) throw refuse();
    return {.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

S3Uri parse_s3_uri(std::string_view uri) {
    const std::string_view rest =
        uri.starts_with(kS3Scheme) ? uri.substr(kS3Scheme.size()) : std::string_view();
    const std::size_t slash = rest.find('/');
    S3Uri parsed{.bucket = std::string(rest.substr(0, slash)), .key = {}};
    if (slash != std::string_view::npos) parsed.key = rest.substr(slash + 1);
    if (parsed.bucket.empty() || parsed.key.starts_with('/')) {
        throw Error(ErrorCode::invalid_argument,
                    "not an address of the form s3://bucket/key: '" + std::string(uri) + "'");
    }
    return parsed;
}

}  // namespace gruca::net
