// The parts of a multipart upload as they come in: service/s3/upload.h.
#include <algorithm>

#include "base/text.h"
#include "service/s3/call.h"
#include "service/s3/upload.h"

namespace gruca::service::s3 {
namespace {

// The MD5 of what is copied has to be known, so it goes through this process.
Attributes copy_range(const store::ObjectReader& from, ByteRange range, store::ObjectWriter& to,
                      std::optional<Algorithm> algorithm) {
    const auto md5 = make_md5();
    const auto digest = algorithm ? make_digest(*algorithm) : nullptr;
    std::vector<std::byte> buffer(1u << 20);
    for (std::uint64_t done = 0; done < range.bytes;) {
        const auto piece =
            std::span(buffer).first(std::min<std::uint64_t>(range.bytes - done, buffer.size()));
        if (from.read(range.begin + done, piece) != piece.size()) {
            throw Error(ErrorCode::data_loss,
                        "an object is shorter than it was: " + from.info().key);
        }
        md5->update(piece);
        if (digest) digest->update(piece);
        to.write(piece);
        done += piece.size();
    }
    Attributes attributes{.etag = hex_of(md5->finish())};
    if (digest) {
        attributes.checksum =
            Checksum{.algorithm = *algorithm, .value = base64_of(digest->finish())};
    }
    return attributes;
}

}  // namespace

void S3Service::upload_part(Call& call) {
    const Request& request = call.request;
    const std::int64_t number = part_number_of(request);
    const UploadHead head = upload_head_of(uploads_, request);
    const auto writer = uploads_.begin_put(upload_place_of(request) + part_name(number), {});
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
    const UploadHead head = upload_head_of(uploads_, request);
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
    answer_slowly(call, [&] {
        const auto writer = uploads_.begin_put(upload_place_of(request) + part_name(number), {});
        const Attributes attributes = copy_range(*reader, copied, *writer, head.algorithm);
        keep_attributes(*writer, attributes);
        writer->commit();
        XmlWriter xml;
        xml.open_root("CopyPartResult");
        xml.add("LastModified", iso8601(clock_.now()));
        xml.add("ETag", with_quotes(attributes.etag));
        if (const auto& checksum = attributes.checksum) {
            xml.add("Checksum" + upper_name(checksum->algorithm), checksum->value);
        }
        xml.close("CopyPartResult");
        return xml.take();
    });
}

}  // namespace gruca::service::s3
