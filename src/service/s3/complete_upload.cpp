// The end of a multipart upload, which makes the object: service/s3/upload.h.
#include <fmt/format.h>

#include <mutex>

#include "base/boundary.h"
#include "base/log.h"
#include "base/text.h"
#include "net/url.h"
#include "service/s3/call.h"
#include "service/s3/upload.h"
#include "service/s3/write_conditions.h"

namespace gruca::service::s3 {
namespace {

// A part that a client names, as it was when that was looked at. An upload may have more parts than
// a process may have files open, so each is opened when it is its turn.
struct Part {
    int number = 0;
    std::string key;  // In the store of uploads.
    std::uint64_t bytes = 0;
    Attributes attributes;
};

[[noreturn]] void refuse_part(int number) {
    refuse(400, "InvalidPart",
           fmt::format("One or more of the specified parts could not be found. The part may not "
                       "have been uploaded, or the specified entity tag may not match: part {}",
                       number));
}

// The parts that a client names, which have to be there as it knows them.
std::vector<Part> parts_of(const store::ObjectStore& uploads, const std::string& place,
                           const std::vector<CompletedPart>& wanted) {
    std::vector<Part> parts;
    for (const CompletedPart& one : wanted) {
        const std::string key = place + part_name(one.number);
        const auto found = uploads.find(key);
        Attributes attributes = found ? attributes_of(*found) : Attributes{};
        const bool fits = found && attributes.etag == one.etag &&
                          (one.checksum.empty() || !attributes.checksum ||
                           attributes.checksum->value == one.checksum);
        if (!fits) refuse_part(one.number);
        if (&one != &wanted.back() && found->bytes < kPartBytesMin) {
            refuse(400, "EntityTooSmall",
                   fmt::format("Your proposed upload is smaller than the minimum allowed size: "
                               "part {} has {} bytes, at least {}",
                               one.number, found->bytes, kPartBytesMin));
        }
        parts.push_back({.number = one.number,
                         .key = key,
                         .bytes = found->bytes,
                         .attributes = std::move(attributes)});
    }
    return parts;
}

// Unless it is another one by now.
std::unique_ptr<store::ObjectReader> open_part(const store::ObjectStore& uploads,
                                               const Part& part) {
    auto reader = uploads.open(part.key);
    const bool fits = reader && reader->info().bytes == part.bytes &&
                      attributes_of(reader->info()).etag == part.attributes.etag;
    if (!fits) refuse_part(part.number);
    return reader;
}

// What the client counts all parts to have.
void require_size(const Request& request, const std::vector<Part>& parts) {
    const auto told = request.header("x-amz-mp-object-size");
    if (!told) return;
    std::uint64_t bytes = 0;
    for (const Part& part : parts) bytes += part.bytes;
    if (trim(*told) != std::to_string(bytes)) {
        refuse(400, "InvalidRequest",
               fmt::format("The provided 'x-amz-mp-object-size' header does not match what was "
                           "computed: {} bytes",
                           bytes));
    }
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

std::optional<Checksum> full_checksum(const store::ObjectStore& uploads,
                                      const std::vector<Part>& parts, Algorithm algorithm) {
    const auto digest = make_digest(algorithm);
    std::vector<std::byte> buffer(1u << 20);
    for (const Part& part : parts) {
        const auto reader = open_part(uploads, part);
        std::uint64_t at = 0;
        while (const std::size_t bytes = reader->read(at, buffer)) {
            digest->update(std::span(buffer).first(bytes));
            at += bytes;
        }
    }
    return Checksum{.algorithm = algorithm, .value = base64_of(digest->finish())};
}

std::optional<Checksum> checksum_of(const store::ObjectStore& uploads,
                                    const std::vector<Part>& parts, const UploadHead& head) {
    if (!head.algorithm) return std::nullopt;
    return head.is_full_object ? full_checksum(uploads, parts, *head.algorithm)
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

// The object, when it is what this upload has become: the answer to the first completion may have
// been lost.
std::optional<Attributes> S3Service::completed_before(const Request& request) const {
    const auto found = store_.find(request.object());
    if (!found || found->attributes.empty()) return std::nullopt;
    Attributes attributes = attributes_of(*found);
    if (attributes.upload_id != request.parameter("uploadId")) return std::nullopt;
    return attributes;
}

// What is left of an upload that has become an object is nobody's business but ours.
void S3Service::forget_upload(const std::string& place) {
    const auto failed = run_guarded([&] {
        uploads_.for_each(place, [&](const store::ObjectInfo& one) { uploads_.remove(one.key); });
    });
    if (failed) log_warning("cannot remove the parts in {}: {}", place, failed->what());
}

// The last act of a completion, of which another one, a put or an abort may have come first. An
// upload has its head until it is over, so that it becomes an object only once.
Attributes S3Service::commit_upload(const Request& request, Attributes attributes,
                                    store::ObjectWriter& writer) {
    const std::lock_guard lock(mutex_of(request.object()));
    if (const auto before = completed_before(request)) return *before;
    upload_head_of(uploads_, request);
    require_match(request, store_);
    if (writer.commit() == store::PutOutcome::precondition_failed) {
        refuse_precondition("If-None-Match");
    }
    const auto failed = run_guarded([&] { uploads_.remove(upload_place_of(request) + "head"); });
    if (failed) log_warning("cannot end an upload of {}: {}", request.object(), failed->what());
    return attributes;
}

Attributes S3Service::make_object(const Request& request, const UploadHead& head,
                                  const std::vector<CompletedPart>& wanted) {
    const bool if_absent = only_if_absent(request);
    const std::vector<Part> parts = parts_of(uploads_, upload_place_of(request), wanted);
    require_size(request, parts);
    if (if_absent && store_.find(request.object())) refuse_precondition("If-None-Match");
    require_match(request, store_);
    Attributes attributes = head.attributes;
    attributes.upload_id = request.parameter("uploadId");
    attributes.etag = composed_etag(parts);
    attributes.checksum = checksum_of(uploads_, parts, head);
    require_told_checksum(request, attributes.checksum);
    const auto writer = store_.begin_put(request.object(), {.only_if_absent = if_absent});
    for (const Part& part : parts) writer->append(*open_part(uploads_, part), 0, part.bytes);
    keep_attributes(*writer, attributes);
    writer->flush();
    return commit_upload(request, attributes, *writer);
}

void S3Service::complete_upload(Call& call) {
    const Request& request = call.request;
    const auto wanted =
        read_complete(receive_document(call.stream, call.payload, request, Told::of_object));
    const std::string place = upload_place_of(request);
    const auto head = find_upload_head(uploads_, request);
    // Looked for after the head, which goes when the object has come.
    if (const auto before = completed_before(request)) {
        forget_upload(place);
        return call.send_xml(completion_xml(request, *before));
    }
    if (!head) refuse_no_upload();
    answer_slowly(call, [&] {
        Attributes attributes;
        try {
            attributes = make_object(request, *head, wanted);
        } catch (const Refusal&) {
            // What is missing may have been taken by a completion that came first.
            const auto before = completed_before(request);
            if (!before) {
                upload_head_of(uploads_, request);
                throw;
            }
            attributes = *before;
        }
        forget_upload(place);
        return completion_xml(request, attributes);
    });
}

}  // namespace gruca::service::s3
