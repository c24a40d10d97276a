// The end of a multipart upload, which makes the object: service/s3/upload.h.
#include <fmt/format.h>

#include <mutex>

#include "base/text.h"
#include "net/url.h"
#include "service/s3/call.h"
#include "service/s3/upload.h"

namespace gruca::service::s3 {
namespace {

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

std::optional<Checksum> checksum_of(const std::vector<Part>& parts, const UploadHead& head) {
    if (!head.algorithm) return std::nullopt;
    return head.is_full_object ? full_checksum(parts, *head.algorithm)
                               : composed_checksum(parts, *head.algorithm);
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

}  // namespace

void S3Service::complete_upload(Call& call) {
    const Request& request = call.request;
    const auto wanted = read_complete(receive_document(call.stream, call.payload, kXmlBytesMax));
    const std::string place = upload_place_of(request);
    const std::string id = request.parameter("uploadId");
    // The answer to the first completion may have been lost.
    const auto existing = store_.find(request.object());
    if (existing && !existing->attributes.empty()) {
        const Attributes attributes = attributes_of(*existing);
        if (attributes.upload_id == id) {
            return call.send_xml(completion_xml(request, attributes));
        }
    }
    const UploadHead head = upload_head_of(uploads_, request);
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
    answer_slowly(call, [&] {
        attributes.checksum = checksum_of(parts, head);
        require_told_checksum(request, attributes.checksum);
        const auto writer = store_.begin_put(request.object(), {.only_if_absent = if_absent});
        for (const Part& part : parts) writer->append(*part.reader, 0, part.reader->info().bytes);
        keep_attributes(*writer, attributes);
        {
            const std::lock_guard lock(mutex_of(request.object()));
            if (writer->commit() == store::PutOutcome::precondition_failed) {
                refuse_precondition("If-None-Match");
            }
        }
        uploads_.for_each(place, [&](const store::ObjectInfo& one) { uploads_.remove(one.key); });
        return completion_xml(request, attributes);
    });
}

}  // namespace gruca::service::s3
