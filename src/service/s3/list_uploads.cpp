// Listing the uploads of a bucket that are under way, in pages: service/s3/upload.h.
#include <algorithm>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "service/s3/call.h"
#include "service/s3/keys.h"
#include "service/s3/upload.h"

namespace gruca::service::s3 {
namespace {

constexpr std::int64_t kListMax = 1000;
// No upload id has this byte: greater than everything that begins with what stands before it.
constexpr char kBeyond = '\xff';

struct Upload {
    std::string key;
    std::string id;
    TimePoint initiated;

    bool operator<(const Upload& other) const {
        return std::tie(key, id) < std::tie(other.key, other.id);
    }
};

// All of the bucket, in order of their keys: they lie by their ids. One that ends meanwhile is not
// among them.
std::vector<Upload> uploads_of(const store::ObjectStore& uploads, const std::string& place) {
    std::vector<Upload> found;
    store::ListRequest request{.prefix = place, .rolls_up = true};
    for (bool more = true; more;) {
        const store::ListPage page = uploads.list(request);
        for (const std::string& one : page.prefixes) {
            const auto reader = uploads.open(one + "head");
            if (!reader) continue;
            found.push_back({.key = read_upload_head(*reader).key,
                             .id = one.substr(place.size(), one.size() - place.size() - 1),
                             .initiated = reader->info().modified});
        }
        more = page.truncated;
        if (more) request.after = page.prefixes.back() + kBeyond;
    }
    std::sort(found.begin(), found.end());
    return found;
}

struct UploadQuery {
    std::string prefix;
    std::string delimiter;
    std::string key_marker;
    std::string id_marker;
    std::size_t max = 0;
};

struct UploadPage {
    std::vector<Upload> uploads;
    std::vector<std::string> common_prefixes;
    bool truncated = false;
    std::string last_key;  // Or common prefix.
    std::string last_id;
};

// Behind the markers: an upload of the marker's key only with a greater id, where one is given.
bool is_behind(const UploadQuery& query, const Upload& upload) {
    if (query.key_marker.empty()) return true;
    if (upload.key != query.key_marker) return upload.key > query.key_marker;
    return !query.id_marker.empty() && upload.id > query.id_marker;
}

UploadPage page_of(const std::vector<Upload>& all, const UploadQuery& query) {
    UploadPage page;
    for (const Upload& upload : all) {
        if (!upload.key.starts_with(query.prefix) || !is_behind(query, upload)) continue;
        const std::size_t end = query.delimiter.empty()
                                    ? std::string::npos
                                    : upload.key.find(query.delimiter, query.prefix.size());
        std::string rolled;
        if (end != std::string::npos) rolled = upload.key.substr(0, end + query.delimiter.size());
        const bool is_told =
            !rolled.empty() && (rolled == page.last_key || rolled == query.key_marker);
        if (is_told) continue;
        if (page.uploads.size() + page.common_prefixes.size() == query.max) {
            page.truncated = query.max > 0;
            break;
        }
        page.last_key = rolled.empty() ? upload.key : rolled;
        page.last_id = rolled.empty() ? upload.id : "";
        if (rolled.empty()) {
            page.uploads.push_back(upload);
        } else {
            page.common_prefixes.push_back(rolled);
        }
    }
    return page;
}

}  // namespace

void S3Service::list_uploads(Call& call) {
    const Request& request = call.request;
    const Keys keys(request);
    const UploadQuery query{.prefix = request.parameter("prefix"),
                            .delimiter = request.parameter("delimiter"),
                            .key_marker = request.parameter("key-marker"),
                            .id_marker = request.parameter("upload-id-marker"),
                            .max = static_cast<std::size_t>(std::min(
                                request.number("max-uploads", kListMax, 0, INT32_MAX), kListMax))};
    const UploadPage page = page_of(uploads_of(uploads_, request.bucket() + "/"), query);
    XmlWriter xml;
    xml.open_root("ListMultipartUploadsResult");
    xml.add("Bucket", request.bucket());
    xml.add("KeyMarker", keys(query.key_marker));
    xml.add("UploadIdMarker", query.id_marker);
    xml.add("Prefix", keys(query.prefix));
    if (!query.delimiter.empty()) xml.add("Delimiter", keys(query.delimiter));
    if (keys.encodes()) xml.add("EncodingType", "url");
    xml.add("MaxUploads", query.max);
    xml.add("IsTruncated", page.truncated ? "true" : "false");
    if (page.truncated) {
        xml.add("NextKeyMarker", keys(page.last_key));
        xml.add("NextUploadIdMarker", page.last_id);
    }
    for (const Upload& upload : page.uploads) {
        xml.open("Upload");
        xml.add("Key", keys(upload.key));
        xml.add("UploadId", upload.id);
        xml.add("StorageClass", "STANDARD");
        xml.add("Initiated", iso8601(upload.initiated));
        xml.close("Upload");
    }
    for (const std::string& prefix : page.common_prefixes) {
        xml.open("CommonPrefixes");
        xml.add("Prefix", keys(prefix));
        xml.close("CommonPrefixes");
    }
    xml.close("ListMultipartUploadsResult");
    call.send_xml(xml.take());
}

}  // namespace gruca::service::s3
