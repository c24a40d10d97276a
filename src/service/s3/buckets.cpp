#include <fmt/format.h>

#include "base/boundary.h"
#include "base/text.h"
#include "service/s3/call.h"
#include "service/s3/keys.h"
#include "service/s3/listing.h"

namespace gruca::service::s3 {
namespace {

constexpr std::int64_t kListMax = 1000;
constexpr std::size_t kTokenBytesMax = 4096;

void require_admin(KeyKind kind) {
    if (kind == KeyKind::admin) return;
    refuse(403, "AccessDenied", "Access Denied: a job's credentials are for objects, not buckets");
}

std::string token_of(const std::string& after) {
    return base64(bytes_of(after));
}

std::string after_of(const std::string& token) {
    const auto raw = token.size() > kTokenBytesMax ? std::nullopt : from_base64(token);
    if (!raw || raw->empty()) refuse_argument("The continuation token provided is incorrect");
    return std::string(text_of(*raw));
}

ListQuery query_of(const Request& request, bool is_v2) {
    ListQuery query{.bucket = request.bucket(),
                    .prefix = request.parameter("prefix"),
                    .delimiter = request.parameter("delimiter"),
                    .after = request.parameter(is_v2 ? "start-after" : "marker"),
                    .max = static_cast<std::size_t>(
                        std::min(request.number("max-keys", kListMax, 0, INT32_MAX), kListMax))};
    if (is_v2 && request.asks("continuation-token")) {
        query.after = after_of(request.parameter("continuation-token"));
    }
    for (const std::string* text : {&query.prefix, &query.delimiter, &query.after}) {
        if (!is_utf8(*text)) refuse_argument("what is asked for is not UTF-8");
    }
    return query;
}

void add_owner(XmlWriter& xml, const std::string& account) {
    xml.open("Owner");
    xml.add("ID", account);
    xml.add("DisplayName", "gruca");
    xml.close("Owner");
}

void add_contents(XmlWriter& xml, const Listing& listing, const Keys& keys,
                  const std::string& owner) {
    for (const store::ObjectInfo& info : listing.objects) {
        const Attributes attributes = attributes_of(info);
        xml.open("Contents");
        xml.add("Key", keys(info.key));
        xml.add("LastModified", iso8601(info.modified));
        xml.add("ETag", with_quotes(attributes.etag));
        if (attributes.checksum) {
            xml.add("ChecksumAlgorithm", upper_name(attributes.checksum->algorithm));
            xml.add("ChecksumType",
                    attributes.checksum->is_full_object ? "FULL_OBJECT" : "COMPOSITE");
        }
        xml.add("Size", info.bytes);
        if (!owner.empty()) add_owner(xml, owner);
        xml.add("StorageClass", "STANDARD");
        xml.close("Contents");
    }
    for (const std::string& prefix : listing.common_prefixes) {
        xml.open("CommonPrefixes");
        xml.add("Prefix", keys(prefix));
        xml.close("CommonPrefixes");
    }
}

}  // namespace

void S3Service::list_buckets(Call& call) {
    XmlWriter xml;
    xml.open_root("ListAllMyBucketsResult");
    add_owner(xml, options_.account);
    xml.open("Buckets");
    const std::string prefix = call.request.parameter("prefix");
    for (const auto& directory : store_.top_directories()) {
        if (!may_be_bucket(directory.name) || !directory.name.starts_with(prefix)) continue;
        xml.open("Bucket");
        xml.add("Name", directory.name);
        xml.add("CreationDate", iso8601(directory.created));
        xml.add("BucketRegion", options_.region);
        xml.close("Bucket");
    }
    xml.close("Buckets");
    xml.close("ListAllMyBucketsResult");
    call.send_xml(xml.take());
}

void S3Service::create_bucket(Call& call) {
    require_admin(call.kind);
    const std::string& bucket = call.request.bucket();
    require_bucket_name(bucket);
    // Whatever region a client is configured for, the bucket is here.
    read_create_bucket(
        receive_document(call.stream, call.payload, call.request, Told::of_document));
    if (store_.has_directory(bucket + "/")) {
        refuse(
            409, "BucketAlreadyOwnedByYou",
            "Your previous request to create the named bucket succeeded and you already own it.");
    }
    store_.directory_for(bucket + "/");
    net::HttpResponse response = call.answer();
    response.headers.add("Location", "/" + bucket);
    call.send(std::move(response));
}

void S3Service::delete_bucket(Call& call) {
    require_admin(call.kind);
    const std::string& bucket = call.request.bucket();
    if (!store_.remove_directory(bucket + "/")) {
        refuse(409, "BucketNotEmpty", "The bucket you tried to delete is not empty");
    }
    uploads_.for_each(bucket + "/",
                      [&](const store::ObjectInfo& one) { uploads_.remove(one.key); });
    call.send(call.answer(204));
}

void S3Service::list_objects(Call& call) {
    const Request& request = call.request;
    const bool is_v2 = request.parameter("list-type") == "2";
    const Keys keys(request);
    const ListQuery query = query_of(request, is_v2);
    const Listing listing = list_bucket(store_, query);
    XmlWriter xml;
    xml.open_root("ListBucketResult");
    xml.add("Name", query.bucket);
    xml.add("Prefix", keys(query.prefix));
    if (!query.delimiter.empty()) xml.add("Delimiter", keys(query.delimiter));
    xml.add("MaxKeys", query.max);
    if (keys.encodes()) xml.add("EncodingType", "url");
    xml.add("IsTruncated", listing.truncated ? "true" : "false");
    if (is_v2) {
        xml.add("KeyCount", listing.objects.size() + listing.common_prefixes.size());
        if (request.asks("start-after")) {
            xml.add("StartAfter", keys(request.parameter("start-after")));
        }
        if (request.asks("continuation-token")) {
            xml.add("ContinuationToken", request.parameter("continuation-token"));
        }
        if (listing.truncated) xml.add("NextContinuationToken", token_of(listing.last));
    } else {
        xml.add("Marker", keys(query.after));
        const bool tells = listing.truncated && !query.delimiter.empty();
        if (tells) xml.add("NextMarker", keys(listing.last));
    }
    const bool with_owner = !is_v2 || request.parameter("fetch-owner") == "true";
    add_contents(xml, listing, keys, with_owner ? options_.account : "");
    xml.close("ListBucketResult");
    call.send_xml(xml.take());
}

std::optional<api::Fault> S3Service::delete_one(const std::string& bucket,
                                                const DeleteDocument::Object& object) {
    if (!object.not_implemented.empty()) {
        return api::Fault{.code = "NotImplemented",
                          .message = "gruca does not delete by this: " + object.not_implemented};
    }
    if (object.key.size() > kKeyBytesMax) {
        return api::Fault{.code = "KeyTooLongError", .message = "Your key is too long"};
    }
    const std::string key = bucket + "/" + object.key;
    bool fits = true;
    const auto error = run_guarded([&] {
        const std::lock_guard lock(mutex_of(key));
        if (object.etag) {
            const auto found = store_.find(key);
            fits = found && matches_etag(*object.etag, attributes_of(*found).etag);
        }
        if (fits) store_.remove(key);
    });
    if (error) return fault_of_failure(*error);
    if (!fits) return api::Fault{.code = "PreconditionFailed", .message = "ETag"};
    return std::nullopt;
}

void S3Service::delete_objects(Call& call) {
    const Request& request = call.request;
    const DeleteDocument document =
        read_delete(receive_document(call.stream, call.payload, request, Told::of_document));
    answer_slowly(call, [&] {
        XmlWriter xml;
        xml.open_root("DeleteResult");
        for (const DeleteDocument::Object& object : document.objects) {
            const auto fault = delete_one(request.bucket(), object);
            if (!fault && document.quiet) continue;
            xml.open(fault ? "Error" : "Deleted");
            xml.add("Key", object.key);
            if (fault) {
                xml.add("Code", fault->code);
                xml.add("Message", fault->message);
            }
            xml.close(fault ? "Error" : "Deleted");
        }
        xml.close("DeleteResult");
        return xml.take();
    });
}

}  // namespace gruca::service::s3
