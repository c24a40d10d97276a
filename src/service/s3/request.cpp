#include "service/s3/request.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>

#include "base/boundary.h"
#include "base/text.h"
#include "net/url.h"
#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

std::string decoded(std::string_view text, const char* what) {
    std::string result;
    const auto failed = run_guarded([&] { result = net::percent_decode(text); });
    if (failed) refuse(400, "InvalidURI", std::string("Couldn't parse the ") + what + ".");
    if (!is_utf8(result)) {
        refuse(400, "InvalidURI", std::string("The ") + what + " is not UTF-8.");
    }
    return result;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
    const bool digits =
        !text.empty() && text.size() <= 18 &&
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!digits) return std::nullopt;
    return static_cast<std::uint64_t>(parse_int(text).value());
}

}  // namespace

Request::Request(const net::HttpRequest& head) : head_(head) {
    const std::string_view path = head.path();
    const std::size_t slash = std::min(path.find('/', 1), path.size());
    bucket_ = decoded(path.substr(1, slash - 1), "bucket");
    if (slash < path.size()) key_ = decoded(path.substr(slash + 1), "key");
    if (key_.size() > kKeyBytesMax) {
        refuse(
            400, "KeyTooLongError",
            fmt::format("Your key is too long: {} bytes, at most {}", key_.size(), kKeyBytesMax));
    }
    const auto failed = run_guarded([&] {
        for (auto& [name, value] : net::parse_query(head.query())) {
            query_.emplace(std::move(name), std::move(value));
        }
    });
    if (failed) refuse(400, "InvalidURI", "Couldn't parse the query.");
}

std::string Request::parameter(const std::string& name, const std::string& otherwise) const {
    const auto found = query_.find(name);
    return found == query_.end() ? otherwise : found->second;
}

std::int64_t Request::number(const std::string& name, std::int64_t otherwise, std::int64_t least,
                             std::int64_t most) const {
    const auto found = query_.find(name);
    if (found == query_.end() || found->second.empty()) return otherwise;
    const auto value = whole_number(found->second);
    if (!value || static_cast<std::int64_t>(*value) < least ||
        static_cast<std::int64_t>(*value) > most) {
        refuse_argument(fmt::format("{} must be a whole number from {} to {}, not '{}'", name,
                                    least, most, found->second));
    }
    return static_cast<std::int64_t>(*value);
}

std::optional<ByteRange> range_of(const std::optional<std::string>& header, std::uint64_t size) {
    if (!header || !header->starts_with("bytes=")) return std::nullopt;
    const std::string_view text = std::string_view(*header).substr(6);
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos || text.find(',') != std::string_view::npos) {
        return std::nullopt;
    }
    const auto first = whole_number(text.substr(0, dash));
    const auto last = whole_number(text.substr(dash + 1));
    const bool is_suffix = dash == 0;
    if ((is_suffix && !last) || (!is_suffix && !first)) return std::nullopt;
    if (!is_suffix && dash + 1 < text.size() && (!last || *last < *first)) return std::nullopt;
    if (is_suffix ? size == 0 || *last == 0 : *first >= size) {
        throw Refusal{.fault = {.code = "InvalidRange",
                                .message = "The requested range is not satisfiable",
                                .status = 416},
                      .headers = {{"Content-Range", fmt::format("bytes */{}", size)}}};
    }
    if (is_suffix) {
        const std::uint64_t bytes = std::min(*last, size);
        return ByteRange{.begin = size - bytes, .bytes = bytes};
    }
    const std::uint64_t end = last ? std::min(*last, size - 1) : size - 1;
    return ByteRange{.begin = *first, .bytes = end - *first + 1};
}

CopySource copy_source_of(const std::string& header) {
    std::string_view text = header;
    const std::size_t version = text.find("?versionId=");
    if (version != std::string_view::npos) {
        if (text.substr(version) != "?versionId=null") {
            refuse(501, "NotImplemented", "There are no versions of objects.");
        }
        text = text.substr(0, version);
    }
    if (text.starts_with('/')) text.remove_prefix(1);
    const std::string source = decoded(text, "copy source");
    const std::size_t slash = source.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == source.size()) {
        refuse_argument(
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
    }
    return {.bucket = source.substr(0, slash), .key = source.substr(slash + 1)};
}

bool matches_etag(const std::string& list, const std::string& etag) {
    for (const std::string& one : split(list, ',')) {
        std::string_view value = trim(one);
        if (value == "*") return true;
        if (value.starts_with("W/")) value.remove_prefix(2);
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
            value = value.substr(1, value.size() - 2);
        }
        if (value == etag) return true;
    }
    return false;
}

// RFC 9110, 13.2.2: a tag that is given decides over a time that is given.
bool is_not_modified(const Request& request, const std::string& prefix, const std::string& etag,
                     TimePoint modified) {
    const auto time = [&](const char* name) -> std::optional<TimePoint> {
        const auto header = request.header(prefix + name);
        return header ? time_of_http_date(*header) : std::nullopt;
    };
    // A date has no part of a second.
    const auto second = std::chrono::floor<std::chrono::seconds>(modified);
    if (const auto match = request.header(prefix + "if-match")) {
        if (!matches_etag(*match, etag)) refuse_precondition("If-Match");
    } else if (const auto limit = time("if-unmodified-since"); limit && second > *limit) {
        refuse_precondition("If-Unmodified-Since");
    }
    if (const auto none = request.header(prefix + "if-none-match")) {
        return matches_etag(*none, etag);
    }
    const auto since = time("if-modified-since");
    return since && second <= *since;
}

std::string http_date(TimePoint time) {
    return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT",
                       fmt::gmtime(static_cast<std::time_t>(to_ms(time) / 1000)));
}

std::optional<TimePoint> time_of_http_date(const std::string& text) {
    std::tm parts = {};
    const char* const end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    if (end == nullptr || *end != '\0') return std::nullopt;
    return time_from_ms(static_cast<std::int64_t>(::timegm(&parts)) * 1000);
}

bool may_be_bucket(std::string_view name) {
    return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos;
}

void require_bucket_name(const std::string& bucket) {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const bool fits = bucket.size() >= 3 && bucket.size() <= 63 && plain(bucket.front()) &&
                      plain(bucket.back()) && bucket.find("..") == std::string::npos &&
                      std::all_of(bucket.begin(), bucket.end(),
                                  [&](char c) { return plain(c) || c == '-' || c == '.'; });
    if (!fits) {
        refuse(400, "InvalidBucketName",
               "The specified bucket is not valid: 3 to 63 lower-case letters, digits, dots and "
               "hyphens: " +
                   bucket);
    }
}

}  // namespace gruca::service::s3
