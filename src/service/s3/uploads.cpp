// Multipart uploads. Until it is completed an upload lies in a store of its own, as
//
//   <bucket>/<upload id>/head         what the object will be: key, attributes
//   <bucket>/<upload id>/part-00001   each part, with its own attributes
//
// and completing it is an ordinary put of all parts one after another. A kill at any moment leaves
// the upload, to be completed again.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/boundary.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "net/url.h"
#include "service/s3/call.h"
#include "service/s3/slow_answer.h"

namespace gruca::service::s3 {
namespace {

constexpr std::uint64_t kCopyBytes = 64u << 20;  // Between signs of life.
constexpr std::int64_t kListMax = 1000;

struct Head {
    std::string key;
    Attributes attributes;
    std::optional<Algorithm> algorithm = {};
    bool is_full_object = false;

    std::string to_text() const {
        Json json = Json::object({{"key", key}, {"attributes", attributes.to_text()}});
        if (algorithm) json.set("algorithm", header_suffix(*algorithm));
        json.set("full", is_full_object);
        return json.dump();
    }
    static Head from_text(const std::string& text) {
        const Json json = Json::parse(text);
        return {.key = json.at("key").as_string(),
                .attributes = Attributes::from_text(json.at("attributes").as_string()),
                .algorithm = algorithm_from(json.get_string("algorithm")),
                .is_full_object = json.get_bool("full")};
    }
};

std::string place_of(const Request& request) {
    const std::string id = request.parameter("uploadId");
    const bool fits =
        id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!fits) refuse(404, "NoSuchUpload", "The specified upload does not exist.");
    return request.bucket() + "/" + id + "/";
}

std::int64_t part_number_of(const Request& request) {
    if (!request.asks("partNumber")) refuse_argument("a part needs a partNumber");
    return request.number("partNumber", 0, 1, kPartNumberMax);
}

std::string part_name(std::int64_t number) {
    return fmt::format("part-{:05}", number);
}

Head head_of(const store::ObjectStore& uploads, const Request& request) {
    const std::string place = place_of(request);
    if (!uploads.find(place + "head")) {
        refuse(404, "NoSuchUpload",
               "The specified upload does not exist. The upload ID may be invalid, or the upload "
               "may have been aborted or completed.");
    }
    Head head = Head::from_text(uploads.get(place + "head"));
    if (head.key != request.key()) {
        refuse(404, "NoSuchUpload", "The specified upload is of another key.");
    }
    return head;
}

struct Part {
    std::unique_ptr<store::ObjectReader> reader;
    Attributes attributes;
};

// The parts that a client names, which have to be there as it knows them.
std::vector<Part> parts_of(const store::ObjectStore& uploads, const std::string& place,
                           const std::vector<CompletedPart>& wanted) {
    std::vector<Part> parts;
    for (const CompletedPart& one : wanted) {
        auto reader = uploads.open(place + part_name(one.number));
        Attributes attributes = reader ? attributes_of(reader->info()) : Attributes{};
        const bool fits = reader && attributes.etag == one.etag &&
                          (one.checksum.empty() || !attributes.checksum ||
                           attributes.checksum->value == one.checksum);
        if (!fits) {
            refuse(400, "InvalidPart",
                   fmt::format("One or more of the specified parts could not be found. The part "
                               "may not have been uploaded, or the specified entity tag may not "
                               "match: part {}",
                               one.number));
        }
        if (&one != &wanted.back() && reader->info().bytes < kPartBytesMin) {
            refuse(400, "EntityTooSmall",
                   fmt::format("Your proposed upload is smaller than the minimum allowed size: "
                               "part {} has {} bytes, at least {}",
                               one.number, reader->info().bytes, kPartBytesMin));
        }
        parts.push_back({.reader = std::move(reader), .attributes = std::move(attributes)});
    }
    return parts;
}

std::string composed_etag(const std::vector<Part>& parts) {
    const auto md5 = make_md5();
    for (const Part& part : parts) {
        std::string raw;
        for (std::size_t i = 0; i + 1 < part.attributes.etag.size(); i += 2) {
            raw += static_cast<char>(std::stoi(part.attributes.etag.substr(i, 2), nullptr, 16));
        }
        md5->update(bytes_of(raw));
    }
    return fmt::format("{}-{}", hex_of(md5->finish()), parts.size());
}

// The checksum of the parts' checksums, where every part has one.
std::optional<Checksum> composed_checksum(const std::vector<Part>& parts, Algorithm algorithm) {
    const auto digest = make_digest(algorithm);
    for (const Part& part : parts) {
        const auto& checksum = part.attributes.checksum;
        if (!checksum || checksum->algorithm != algorithm) return std::nullopt;
        digest->update(*from_base64(checksum->value));
    }
    return Checksum{.algorithm = algorithm,
                    .value = fmt::format("{}-{}", base64_of(digest->finish()), parts.size()),
                    .is_full_object = false};
}

std::optional<Checksum> full_checksum(const std::vector<Part>& parts, Algorithm algorithm) {
    const auto digest = make_digest(algorithm);
    std::vector<std::byte> buffer(1u << 20);
    for (const Part& part : parts) {
        std::uint64_t at = 0;
        while (const std::size_t bytes = part.reader->read(at, buffer)) {
            digest->update(std::span(buffer).first(bytes));
            at += bytes;
        }
    }
    return Checksum{.algorithm = algorithm, .value = base64_of(digest->finish())};
}

void require_told_checksum(const Request& request, const std::optional<Checksum>& checksum) {
    if (!checksum) return;
    const std::string name = std::string("x-amz-checksum-") + header_suffix(checksum->algorithm);
    const auto told = request.header(name);
    if (told && *told != checksum->value) {
        refuse(400, "BadDigest",
               "The " + upper_name(checksum->algorithm) +
                   " you specified did not match the calculated checksum.");
    }
}

std::string completion_xml(const Request& request, const Attributes& attributes) {
    XmlWriter xml;
    xml.open_root("CompleteMultipartUploadResult");
    xml.add("Location", "/" + net::percent_encode(request.object(), true));
    xml.add("Bucket", request.bucket());
    xml.add("Key", request.key());
    xml.add("ETag", with_quotes(attributes.etag));
    if (attributes.checksum) {
        xml.add("Checksum" + upper_name(attributes.checksum->algorithm),
                attributes.checksum->value);
        xml.add("ChecksumType", attributes.checksum->is_full_object ? "FULL_OBJECT" : "COMPOSITE");
    }
    xml.close("CompleteMultipartUploadResult");
    return xml.take();
}

std::string error_xml(const api::Fault& fault, const std::string& request_id) {
    XmlWriter xml;
    xml.open("Error");
    xml.add("Code", fault.code);
    xml.add("Message", fault.message);
    xml.add("RequestId", request_id);
    xml.close("Error");
    return xml.take();
}

}  // namespace

void S3Service::create_upload(Call& call) {
    const Request& request = call.request;
    Head head{.key = request.key(), .attributes = attributes_in(request)};
    if (const auto name = request.header("x-amz-checksum-algorithm")) {
        head.algorithm = algorithm_from(*name);
        if (!head.algorithm)
            refuse_argument("Checksum algorithm provided is unsupported: " + *name);
        const std::string type = request.header("x-amz-checksum-type").value_or("");
        head.is_full_object =
            type == "FULL_OBJECT" || (type.empty() && *head.algorithm == Algorithm::crc64nvme);
    }
    const std::string id = random_.hex_id(32);
    uploads_.put(request.bucket() + "/" + id + "/head", head.to_text());
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

void S3Service::upload_part(Call& call) {
    const Request& request = call.request;
    const std::int64_t number = part_number_of(request);
    const Head head = head_of(uploads_, request);
    const auto writer = uploads_.begin_put(place_of(request) + part_name(number), {});
    const Received received =
        receive_body(call.stream, call.payload, request, *writer, head.algorithm);
    const Attributes attributes{.etag = hex_of(received.md5), .checksum = received.checksum};
    keep_attributes(*writer, attributes);
    writer->commit();
    net::HttpResponse response = call.answer();
    response.headers.add("ETag", with_quotes(attributes.etag));
    if (received.checksum) {
        response.headers.add(
            std::string("x-amz-checksum-") + header_suffix(received.checksum->algorithm),
            received.checksum->value);
    }
    call.send(std::move(response));
}

void S3Service::upload_part_copy(Call& call) {
    const Request& request = call.request;
    const std::int64_t number = part_number_of(request);
    const Head head = head_of(uploads_, request);
    const CopySource source = copy_source_of(request.header("x-amz-copy-source").value());
    require_bucket(source.bucket);
    const auto reader = store_.open(source.bucket + "/" + source.key);
    if (!reader) refuse_no_key(source.key);
    const Attributes of_source = attributes_of(reader->info());
    if (is_not_modified(request, "x-amz-copy-source-", of_source.etag, reader->info().modified)) {
        refuse_precondition("x-amz-copy-source-If-None-Match");
    }
    const std::uint64_t size = reader->info().bytes;
    const auto told = request.header("x-amz-copy-source-range");
    const auto range = range_of(told, size);
    if (told && (!range || told->find('-') + 1 == told->size())) {
        refuse_argument("The x-amz-copy-source-range value must be of the form bytes=first-last");
    }
    const ByteRange copied = range.value_or(ByteRange{.begin = 0, .bytes = size});
    // Its MD5 has to be known, so it goes through this process.
    const auto md5 = make_md5();
    const auto digest = head.algorithm ? make_digest(*head.algorithm) : nullptr;
    const auto writer = uploads_.begin_put(place_of(request) + part_name(number), {});
    std::vector<std::byte> buffer(1u << 20);
    for (std::uint64_t done = 0; done < copied.bytes;) {
        const auto piece =
            std::span(buffer).first(std::min<std::uint64_t>(copied.bytes - done, buffer.size()));
        if (reader->read(copied.begin + done, piece) != piece.size()) {
            throw Error(ErrorCode::data_loss, "an object is shorter than it was: " + source.key);
        }
        md5->update(piece);
        if (digest) digest->update(piece);
        writer->write(piece);
        done += piece.size();
    }
    Attributes attributes{.etag = hex_of(md5->finish())};
    if (digest) {
        attributes.checksum =
            Checksum{.algorithm = *head.algorithm, .value = base64_of(digest->finish())};
    }
    keep_attributes(*writer, attributes);
    writer->commit();
    XmlWriter xml;
    xml.open_root("CopyPartResult");
    xml.add("LastModified", iso8601(clock_.now()));
    xml.add("ETag", with_quotes(attributes.etag));
    if (digest) xml.add("Checksum" + upper_name(*head.algorithm), attributes.checksum->value);
    xml.close("CopyPartResult");
    call.send_xml(xml.take());
}

void S3Service::complete_upload(Call& call) {
    const Request& request = call.request;
    const auto wanted = read_complete(receive_document(call.stream, call.payload, kXmlBytesMax));
    const std::string place = place_of(request);
    const std::string id = request.parameter("uploadId");
    // The answer to the first completion may have been lost.
    const auto existing = store_.find(request.object());
    if (existing && !existing->attributes.empty()) {
        const Attributes attributes = attributes_of(*existing);
        if (attributes.upload_id == id) {
            return call.send_xml(completion_xml(request, attributes));
        }
    }
    const Head head = head_of(uploads_, request);
    const std::vector<Part> parts = parts_of(uploads_, place, wanted);
    const bool if_absent = request.header("If-None-Match").has_value();
    if (if_absent && existing) refuse_precondition("If-None-Match");
    if (const auto match = request.header("If-Match")) {
        if (!existing) refuse_no_key(request.key());
        if (!matches_etag(*match, attributes_of(*existing).etag)) refuse_precondition("If-Match");
    }
    Attributes attributes = head.attributes;
    attributes.upload_id = id;
    attributes.etag = composed_etag(parts);
    if (head.algorithm) {
        attributes.checksum = head.is_full_object ? full_checksum(parts, *head.algorithm)
                                                  : composed_checksum(parts, *head.algorithm);
    }
    require_told_checksum(request, attributes.checksum);

    // From here on it takes its time.
    net::HttpResponse head_of_answer = call.answer();
    head_of_answer.headers.add("Content-Type", "application/xml");
    SlowAnswer answer(call.stream, clock_, std::move(head_of_answer));
    std::optional<api::Fault> fault;
    const auto writer = store_.begin_put(request.object(), {.only_if_absent = if_absent});
    const auto error = run_guarded([&] {
        for (const Part& part : parts) {
            const std::uint64_t size = part.reader->info().bytes;
            for (std::uint64_t at = 0; at < size; at += kCopyBytes) {
                writer->append(*part.reader, at, std::min(kCopyBytes, size - at));
                answer.keep_alive();
            }
        }
        keep_attributes(*writer, attributes);
        const std::lock_guard lock(mutex_of(request.object()));
        if (writer->commit() == store::PutOutcome::precondition_failed) {
            fault = api::Fault{.code = "PreconditionFailed",
                               .message =
                                   "At least one of the pre-conditions you specified did "
                                   "not hold: If-None-Match",
                               .status = 412};
        }
    });
    if (error) fault = fault_of_failure(*error);
    if (fault && !answer.has_begun()) throw Refusal{.fault = *fault};
    if (!fault) {
        uploads_.for_each(place, [&](const store::ObjectInfo& one) { uploads_.remove(one.key); });
    }
    answer.finish(fault ? error_xml(*fault, call.request_id) : completion_xml(request, attributes));
}

void S3Service::abort_upload(Call& call) {
    head_of(uploads_, call.request);
    uploads_.for_each(place_of(call.request),
                      [&](const store::ObjectInfo& one) { uploads_.remove(one.key); });
    call.send(call.answer(204));
}

void S3Service::list_parts(Call& call) {
    const Request& request = call.request;
    const Head head = head_of(uploads_, request);
    const std::string place = place_of(request);
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

void S3Service::list_uploads(Call& call) {
    const Request& request = call.request;
    const std::string place = request.bucket() + "/";
    struct Upload {
        std::string key, id;
        TimePoint initiated;
    };
    std::vector<Upload> found;
    uploads_.for_each(place, [&](const store::ObjectInfo& one) {
        if (!one.key.ends_with("/head")) return;
        const Head head = Head::from_text(uploads_.get(one.key));
        if (!head.key.starts_with(request.parameter("prefix"))) return;
        found.push_back(
            {.key = head.key, .id = one.key.substr(place.size(), 32), .initiated = one.modified});
    });
    std::sort(found.begin(), found.end(), [](const Upload& a, const Upload& b) {
        return std::pair(a.key, a.id) < std::pair(b.key, b.id);
    });
    XmlWriter xml;
    xml.open_root("ListMultipartUploadsResult");
    xml.add("Bucket", request.bucket());
    xml.add("Prefix", request.parameter("prefix"));
    xml.add("MaxUploads", found.size());
    xml.add("IsTruncated", "false");
    for (const Upload& upload : found) {
        xml.open("Upload");
        xml.add("Key", upload.key);
        xml.add("UploadId", upload.id);
        xml.add("StorageClass", "STANDARD");
        xml.add("Initiated", iso8601(upload.initiated));
        xml.close("Upload");
    }
    xml.close("ListMultipartUploadsResult");
    call.send_xml(xml.take());
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
