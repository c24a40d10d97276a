#include "service/s3/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/boundary.h"
#include "base/json.h"
#include "base/text.h"
#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

constexpr std::string_view kMetaPrefix = "x-amz-meta-";
constexpr const char* kDefaultType = "binary/octet-stream";
constexpr std::array kKeptHeaders = {"Content-Type",     "Content-Encoding", "Content-Disposition",
                                     "Content-Language", "Cache-Control",    "Expires"};

Json object_of(const std::map<std::string, std::string>& members) {
    Json json = Json::object();
    for (const auto& [name, value] : members) json.set(name, value);
    return json;
}

std::map<std::string, std::string> members_of(const Json& json, const char* name) {
    std::map<std::string, std::string> members;
    const Json* object = json.find(name);
    if (object == nullptr) return members;
    for (const auto& [key, value] : object->as_object()) members[key] = value.as_string();
    return members;
}

// What a client has to say of the transfer, and not of the object.
std::string without_aws_chunked(const std::string& encoding) {
    std::string kept;
    for (const std::string& one : split(encoding, ',')) {
        if (trim(one) == "aws-chunked" || trim(one).empty()) continue;
        kept += (kept.empty() ? "" : ",") + std::string(trim(one));
    }
    return kept;
}

// Nothing that could break out of the line of a header.
bool is_plain(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f;
    });
}

bool may_be_answered(const Attributes& attributes) {
    const std::string& etag = attributes.etag;
    if (etag.empty() || etag.find_first_not_of("0123456789abcdef-") != std::string::npos) {
        return false;
    }
    if (attributes.checksum && !is_plain(attributes.checksum->value)) return false;
    for (const auto& [name, value] : attributes.headers) {
        if (std::find(kKeptHeaders.begin(), kKeptHeaders.end(), name) == kKeptHeaders.end() ||
            !is_plain(value)) {
            return false;
        }
    }
    return std::all_of(attributes.metadata.begin(), attributes.metadata.end(), [](const auto& one) {
        return is_plain(one.first) && is_plain(one.second) &&
               one.first.find_first_of(": ") == std::string::npos;
    });
}

}  // namespace

std::string Attributes::to_text() const {
    Json json = Json::object({{"etag", etag}});
    if (checksum) {
        json.set("checksum", Json::object({{"algorithm", header_suffix(checksum->algorithm)},
                                           {"value", checksum->value},
                                           {"full", checksum->is_full_object}}));
    }
    if (!headers.empty()) json.set("headers", object_of(headers));
    if (!metadata.empty()) json.set("metadata", object_of(metadata));
    if (!upload_id.empty()) json.set("upload", upload_id);
    return json.dump();
}

Attributes Attributes::from_text(const std::string& text) {
    const Json json = Json::parse(text);
    Attributes attributes{.etag = json.at("etag").as_string(),
                          .headers = members_of(json, "headers"),
                          .metadata = members_of(json, "metadata"),
                          .upload_id = json.get_string("upload")};
    if (const Json* checksum = json.find("checksum")) {
        const auto algorithm = algorithm_from(checksum->get_string("algorithm"));
        if (algorithm) {
            attributes.checksum = Checksum{.algorithm = *algorithm,
                                           .value = checksum->get_string("value"),
                                           .is_full_object = checksum->get_bool("full", true)};
        }
    }
    return attributes;
}

Attributes attributes_of(const store::ObjectInfo& info) {
    // Jobs write into the directory as well, and may have put anything beside a file.
    std::optional<Attributes> kept;
    if (!info.attributes.empty()) {
        run_guarded([&] { kept = Attributes::from_text(info.attributes); });
    }
    if (kept && may_be_answered(*kept)) return *kept;
    const auto digest = make_md5();
    digest->update(bytes_of(info.etag));
    return {.etag = hex_of(digest->finish()) + "-1"};
}

Attributes attributes_in(const Request& request) {
    Attributes attributes;
    for (const char* name : kKeptHeaders) {
        auto value = request.header(name);
        if (value && std::string_view(name) == "Content-Encoding") {
            value = without_aws_chunked(*value);
        }
        if (value && !value->empty()) attributes.headers[name] = repair_utf8(*value);
    }
    std::size_t bytes = 0;
    for (const auto& [name, value] : request.headers().fields()) {
        const std::string lower = to_lower(name);
        if (!lower.starts_with(kMetaPrefix)) continue;
        const std::string key = lower.substr(kMetaPrefix.size());
        std::string& kept = attributes.metadata[key];
        kept += (kept.empty() ? "" : ",") + repair_utf8(value);
        bytes += key.size() + value.size();
    }
    if (bytes > kUserMetadataBytesMax) {
        refuse(400, "MetadataTooLarge",
               fmt::format("Your metadata headers exceed the maximum allowed metadata size: {} "
                           "bytes, at most {}",
                           bytes, kUserMetadataBytesMax));
    }
    return attributes;
}

net::Headers headers_of(const store::ObjectInfo& info, const Attributes& attributes,
                        bool with_checksum) {
    net::Headers headers = {{"ETag", with_quotes(attributes.etag)},
                            {"Last-Modified", http_date(info.modified)},
                            {"Accept-Ranges", "bytes"}};
    if (!attributes.headers.contains("Content-Type")) headers.add("Content-Type", kDefaultType);
    for (const auto& [name, value] : attributes.headers) headers.add(name, value);
    for (const auto& [name, value] : attributes.metadata) {
        headers.add(std::string(kMetaPrefix) + name, value);
    }
    if (with_checksum && attributes.checksum) {
        const Checksum& checksum = *attributes.checksum;
        headers.add(std::string("x-amz-checksum-") + header_suffix(checksum.algorithm),
                    checksum.value);
        headers.add("x-amz-checksum-type", checksum.is_full_object ? "FULL_OBJECT" : "COMPOSITE");
    }
    return headers;
}

std::string with_quotes(const std::string& etag) {
    return '"' + etag + '"';
}

}  // namespace gruca::service::s3
