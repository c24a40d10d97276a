#include "service/s3/attributes.h"

#include <fmt/format.h>

#include <array>

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
    if (!info.attributes.empty()) return Attributes::from_text(info.attributes);
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
        if (value && !value->empty()) attributes.headers[name] = *value;
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
