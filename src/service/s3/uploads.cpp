// Multipart uploads from their beginning to where they are forgotten: service/s3/upload.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/boundary.h"
#include "base/log.h"
#include "base/text.h"
#include "service/s3/call.h"
#include "service/s3/upload.h"

namespace gruca::service::s3 {
namespace {

constexpr std::int64_t kListMax = 1000;

}  // namespace

void S3Service::create_upload(Call& call) {
    forget_uploads_if_due();
    const Request& request = call.request;
    UploadHead head{.key = request.key(), .attributes = attributes_in(request)};
    if (const auto name = request.header("x-amz-checksum-algorithm")) {
        head.algorithm = algorithm_from(*name);
        if (!head.algorithm)
            refuse_argument("Checksum algorithm provided is unsupported: " + *name);
        const std::string type = request.header("x-amz-checksum-type").value_or("");
        head.is_full_object =
            type == "FULL_OBJECT" || (type.empty() && *head.algorithm == Algorithm::crc64nvme);
    }
    const std::string id = random_.hex_id(32);
    const auto writer = uploads_.begin_put(request.bucket() + "/" + id + "/head", {});
    writer->write(bytes_of(head.to_text()));
    // Asked here, where nothing has been sent yet: parts are known again by what lies beside them.
    if (!writer->set_attributes(head.attributes.to_text())) {
        refuse(501, "NotImplemented",
               "The file system of the service's data directory keeps no extended attributes, and "
               "so no parts of objects; put the object at once.");
    }
    writer->commit();
    XmlWriter xml;
    xml.open_root("InitiateMultipartUploadResult");
    xml.add("Bucket", request.bucket());
    xml.add("Key", request.key());
    xml.add("UploadId", id);
    xml.close("InitiateMultipartUploadResult");
    net::HttpResponse response = call.answer();
    response.headers.add("Content-Type", "application/xml");
    if (head.algorithm) {
        response.headers.add("x-amz-checksum-algorithm", upper_name(*head.algorithm));
        response.headers.add("x-amz-checksum-type",
                             head.is_full_object ? "FULL_OBJECT" : "COMPOSITE");
    }
    response.body = xml.take();
    call.send(std::move(response));
}

void S3Service::abort_upload(Call& call) {
    const std::string place = upload_place_of(call.request);
    {
        // No completion can come between any more.
        const std::lock_guard lock(mutex_of(call.request.object()));
        upload_head_of(uploads_, call.request);
        uploads_.remove(place + "head");
    }
    uploads_.for_each(place, [&](const store::ObjectInfo& one) { uploads_.remove(one.key); });
    call.send(call.answer(204));
}

void S3Service::list_parts(Call& call) {
    const Request& request = call.request;
    const UploadHead head = upload_head_of(uploads_, request);
    const std::string place = upload_place_of(request);
    const std::int64_t marker = request.number("part-number-marker", 0, 0, kPartNumberMax);
    const auto max = static_cast<std::size_t>(
        std::min(request.number("max-parts", kListMax, 0, INT32_MAX), kListMax));
    const store::ListPage page = uploads_.list(
        {.prefix = place + "part-", .after = place + part_name(marker), .keys_max = max});
    XmlWriter xml;
    xml.open_root("ListPartsResult");
    xml.add("Bucket", request.bucket());
    xml.add("Key", request.key());
    xml.add("UploadId", request.parameter("uploadId"));
    xml.add("PartNumberMarker", static_cast<std::uint64_t>(marker));
    xml.add("MaxParts", max);
    xml.add("StorageClass", "STANDARD");
    xml.add("IsTruncated", page.truncated ? "true" : "false");
    std::int64_t last = marker;
    for (const store::ObjectInfo& info : page.objects) {
        const Attributes attributes = attributes_of(info);
        last = parse_int(info.key.substr(place.size() + 5)).value_or(0);
        xml.open("Part");
        xml.add("PartNumber", static_cast<std::uint64_t>(last));
        xml.add("LastModified", iso8601(info.modified));
        xml.add("ETag", with_quotes(attributes.etag));
        xml.add("Size", info.bytes);
        if (attributes.checksum) {
            xml.add("Checksum" + upper_name(attributes.checksum->algorithm),
                    attributes.checksum->value);
        }
        xml.close("Part");
    }
    if (page.truncated) xml.add("NextPartNumberMarker", static_cast<std::uint64_t>(last));
    xml.close("ListPartsResult");
    call.send_xml(xml.take());
}

void S3Service::forget_uploads_if_due() {
    {
        const std::lock_guard lock(forgetting_);
        if (clock_.now() - forgotten_at_ < kForgetUploadsEvery) return;
        forgotten_at_ = clock_.now();
    }
    const auto failure = run_guarded([&] { forget_old_uploads(); });
    if (failure) log_warning("old uploads are not forgotten now: {}", failure->what());
}

// A part that came in while its upload was aborted has no head any more, only an age.
void S3Service::forget_old_uploads() {
    const TimePoint limit = clock_.now() - kUploadAgeMax;
    std::map<std::string, TimePoint> last_written;  // By place: its head, or else any part.
    std::set<std::string> with_head;
    uploads_.for_each("", [&](const store::ObjectInfo& one) {
        const std::string place = one.key.substr(0, one.key.rfind('/') + 1);
        if (one.key.ends_with("/head")) with_head.insert(place);
        const bool decides = one.key.ends_with("/head") || !with_head.contains(place);
        if (decides) last_written[place] = one.modified;
    });
    for (const auto& [place, time] : last_written) {
        if (time >= limit) continue;
        log_info("forgetting an upload that was begun more than a week ago: {}", place);
        uploads_.for_each(place, [&](const store::ObjectInfo& one) { uploads_.remove(one.key); });
    }
}

}  // namespace gruca::service::s3
