#include "net/sigv4_canonical.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"
#include "net/url.h"

namespace gruca::net {
namespace {

constexpr std::size_t kSha256Bytes = 32;
constexpr std::size_t kDayCharacters = 8;

// OpenSSL is used for its digests alone. Without this its first use would read its configuration
// and list all that it can do by name: two milliseconds of every agent.
void open_digests_only() {
    [[maybe_unused]] static const int done = ::OPENSSL_init_crypto(
        OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
            OPENSSL_INIT_NO_ADD_ALL_DIGESTS | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS,
        nullptr);
}

std::string hmac(std::string_view key, std::string_view text) {
    open_digests_only();
    std::array<unsigned char, kSha256Bytes> mac{};
    unsigned length = 0;
    const unsigned char* made =
        HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &length);
    CHECK(made != nullptr && length == kSha256Bytes, "HMAC-SHA256 is not available");
    return std::string(reinterpret_cast<const char*>(mac.data()), mac.size());
}

std::string without_dot_segments(std::string_view path) {
    std::vector<std::string> kept;
    for (std::string& segment : split(path, '/')) {
        if (segment == "..") {
            if (!kept.empty()) kept.pop_back();
        } else if (!segment.empty() && segment != ".") {
            kept.push_back(std::move(segment));
        }
    }
    std::string normalised;
    for (const std::string& segment : kept) normalised += "/" + segment;
    if (kept.empty() || path.ends_with('/')) normalised += "/";
    return normalised;
}

std::string canonical_path(std::string_view path, PathForm form) {
    const std::string whole = form.normalised ? without_dot_segments(path) : std::string(path);
    return percent_encode(form.encoded_again ? whole : percent_decode(whole), true);
}

std::string canonical_query(std::string_view query) {
    std::vector<std::pair<std::string, std::string>> fields;
    for (const auto& [name, value] : parse_query(query)) {
        fields.emplace_back(percent_encode(name), percent_encode(value));
    }
    std::sort(fields.begin(), fields.end());
    std::string text;
    for (const auto& [name, value] : fields) {
        if (!text.empty()) text += "&";
        text += name + "=" + value;
    }
    return text;
}

std::string without_runs_of_blanks(std::string_view value) {
    std::string text;
    for (const char c : trim(value)) {
        const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
        if (!blank) text.push_back(c);
        if (blank && !text.ends_with(' ')) text.push_back(' ');
    }
    return text;
}

std::string canonical_header(const Headers& headers, const std::string& name) {
    std::string line = name + ":";
    bool first = true;
    for (const auto& [field, value] : headers.fields()) {
        if (!same_header_name(field, name)) continue;
        if (!first) line += ",";
        line += without_runs_of_blanks(value);
        first = false;
    }
    return line + "\n";
}

}  // namespace

PathForm path_form_of(std::string_view service) {
    const bool is_s3 = service == "s3";
    return {.normalised = !is_s3, .encoded_again = !is_s3};
}

std::string canonical_request(const HttpRequest& request,
                              const std::vector<std::string>& signed_headers,
                              std::string_view payload_hash, PathForm form) {
    std::string headers;
    std::string names;
    for (const std::string& name : signed_headers) {
        headers += canonical_header(request.headers, name);
        names += (names.empty() ? "" : ";") + name;
    }
    return request.method + "\n" + canonical_path(request.path(), form) + "\n" +
           canonical_query(request.query()) + "\n" + headers + "\n" + names + "\n" +
           std::string(payload_hash);
}

std::string scope_text(std::string_view date, const SigningScope& scope) {
    return std::string(date.substr(0, kDayCharacters)) + "/" + scope.region + "/" + scope.service +
           "/aws4_request";
}

std::string string_to_sign(std::string_view date, const SigningScope& scope,
                           std::string_view canonical) {
    return "AWS4-HMAC-SHA256\n" + std::string(date) + "\n" + scope_text(date, scope) + "\n" +
           sha256_hex(canonical);
}

std::string signing_key_of(std::string_view secret_key, std::string_view date,
                           const SigningScope& scope) {
    std::string key = hmac("AWS4" + std::string(secret_key), date.substr(0, kDayCharacters));
    for (const std::string_view part :
         {std::string_view(scope.region), std::string_view(scope.service),
          std::string_view("aws4_request")}) {
        key = hmac(key, part);
    }
    return key;
}

std::string hmac_hex(std::string_view key, std::string_view text) {
    return hex(bytes_of(hmac(key, text)));
}

std::string signature_of(std::string_view secret_key, std::string_view date,
                         const SigningScope& scope, std::string_view text) {
    return hmac_hex(signing_key_of(secret_key, date, scope), text);
}

std::string sha256_hex(std::string_view bytes) {
    open_digests_only();
    std::array<unsigned char, kSha256Bytes> digest{};
    unsigned length = 0;
    const int made =
        EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
    CHECK(made == 1 && length == kSha256Bytes, "SHA-256 is not available");
    return hex(std::as_bytes(std::span(digest)));
}

}  // namespace gruca::net
