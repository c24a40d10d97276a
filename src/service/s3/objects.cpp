#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "service/s3/call.h"
#include "service/s3/write_conditions.h"

namespace gruca::service::s3 {
namespace {

constexpr std::size_t kPieceBytes = 512u << 10;

// What the query of a signed URL may say about the answer.
constexpr std::array<std::pair<const char*, const char*>, 6> kOverrides = {{
    {"response-content-type", "Content-Type"},
    {"response-content-language", "Content-Language"},
    {"response-expires", "Expires"},
    {"response-cache-control", "Cache-Control"},
    {"response-content-disposition", "Content-Disposition"},
    {"response-content-encoding", "Content-Encoding"},
}};

void send_body(net::HttpStream& stream, const store::ObjectReader& reader, ByteRange range) {
    if (reader.fd() >= 0) return stream.write_file(reader.fd(), range.begin, range.bytes);
    std::vector<std::byte> buffer(kPieceBytes);
    while (range.bytes > 0) {
        const auto piece =
            std::span(buffer).first(std::min<std::uint64_t>(range.bytes, buffer.size()));
        if (reader.read(range.begin, piece) != piece.size()) {
            throw Error(ErrorCode::data_loss, "an object is shorter than it was");
        }
        stream.write(piece);
        range.begin += piece.size();
        range.bytes -= piece.size();
    }
}

// There is one part where an object was put at once; where it was put in several, nobody knows
// their borders any more.
bool is_whole_part(const Request& request, const Attributes& attributes) {
    if (!request.asks("partNumber")) return false;
    const std::int64_t number = request.number("partNumber", 0, 1, kPartNumberMax);
    if (attributes.etag.find('-') != std::string::npos) {
        refuse(501, "NotImplemented", "the parts of a finished object are not kept apart");
    }
    if (number != 1) {
        refuse(416, "InvalidPartNumber", "The requested partnumber is not satisfiable");
    }
    return true;
}

}  // namespace

void S3Service::get_object(Call& call) {
    const Request& request = call.request;
    const auto reader = store_.open(request.object());
    if (!reader) refuse_no_key(request.key());
    const store::ObjectInfo& info = reader->info();
    const Attributes attributes = attributes_of(info);
    const bool not_modified = is_not_modified(request, "", attributes.etag, info.modified);
    const bool part = is_whole_part(request, attributes);
    const auto range = part ? std::nullopt : range_of(request.header("Range"), info.bytes);

    // A checksum is of a body: clients hold what comes against it.
    const bool with_checksum =
        request.header("x-amz-checksum-mode").has_value() && !range && !not_modified;
    net::HttpResponse head = call.answer(not_modified ? 304 : range || part ? 206 : 200);
    const net::Headers kept = headers_of(info, attributes, with_checksum);
    for (const auto& [name, value] : kept.fields()) head.headers.add(name, value);
    for (const auto& [parameter, header] : kOverrides) {
        if (request.asks(parameter)) head.headers.set(header, request.parameter(parameter));
    }
    if (not_modified) return call.send(std::move(head));
    const ByteRange sent = range.value_or(ByteRange{.begin = 0, .bytes = info.bytes});
    if (range || (part && info.bytes > 0)) {
        head.headers.add("Content-Range", fmt::format("bytes {}-{}/{}", sent.begin,
                                                      sent.begin + sent.bytes - 1, info.bytes));
    }
    call.stream.begin(std::move(head), sent.bytes);
    if (request.method() == "GET") send_body(call.stream, *reader, sent);
}

// The sync of a long body holds up no other object: it goes before the lock.
void S3Service::commit(const Request& request, store::ObjectWriter& writer) {
    writer.flush();
    const std::lock_guard lock(mutex_of(request.object()));
    require_match(request, store_);
    if (writer.commit() == store::PutOutcome::precondition_failed) {
        refuse_precondition("If-None-Match");
    }
}

void S3Service::put_object(Call& call) {
    const Request& request = call.request;
    const bool if_absent = only_if_absent(request);
    Attributes attributes = attributes_in(request);
    if (if_absent && store_.find(request.object())) refuse_precondition("If-None-Match");
    const auto writer = store_.begin_put(request.object(), {.only_if_absent = if_absent});
    const Received received = receive_body(call.stream, call.payload, request, *writer);
    attributes.etag = hex_of(received.md5);
    attributes.checksum = received.checksum;
    keep_attributes(*writer, attributes);
    commit(request, *writer);
    net::HttpResponse response = call.answer();
    response.headers.add("ETag", with_quotes(attributes.etag));
    if (attributes.checksum) {
        const Checksum& checksum = *attributes.checksum;
        response.headers.add(std::string("x-amz-checksum-") + header_suffix(checksum.algorithm),
                             checksum.value);
        response.headers.add("x-amz-checksum-type", "FULL_OBJECT");
    }
    call.send(std::move(response));
}

void S3Service::copy_object(Call& call) {
    const Request& request = call.request;
    const CopySource source = copy_source_of(request.header("x-amz-copy-source").value());
    const std::string directive = request.header("x-amz-metadata-directive").value_or("COPY");
    if (directive != "COPY" && directive != "REPLACE") {
        refuse_argument("Unknown metadata directive: " + directive);
    }
    require_bucket(source.bucket);
    const auto reader = store_.open(source.bucket + "/" + source.key);
    if (!reader) refuse_no_key(source.key);
    Attributes attributes = attributes_of(reader->info());
    if (is_not_modified(request, "x-amz-copy-source-", attributes.etag, reader->info().modified)) {
        refuse_precondition("x-amz-copy-source-If-None-Match");
    }
    const bool replaces = directive == "REPLACE";
    if (!replaces && source.bucket == request.bucket() && source.key == request.key()) {
        refuse(400, "InvalidRequest",
               "This copy request is illegal because it is trying to copy an object to itself "
               "without changing the object's metadata.");
    }
    if (replaces) {
        Attributes fresh = attributes_in(request);
        attributes.headers = std::move(fresh.headers);
        attributes.metadata = std::move(fresh.metadata);
    }
    attributes.upload_id.clear();
    const bool if_absent = only_if_absent(request);
    answer_slowly(call, [&] {
        const auto writer = store_.begin_put(request.object(), {.only_if_absent = if_absent});
        writer->append(*reader, 0, reader->info().bytes);
        keep_attributes(*writer, attributes);
        commit(request, *writer);
        XmlWriter xml;
        xml.open_root("CopyObjectResult");
        xml.add("LastModified", iso8601(clock_.now()));
        xml.add("ETag", with_quotes(attributes.etag));
        xml.close("CopyObjectResult");
        return xml.take();
    });
}

void S3Service::delete_object(Call& call) {
    const Request& request = call.request;
    const std::lock_guard lock(mutex_of(request.object()));
    require_match(request, store_);
    store_.remove(request.object());
    call.send(call.answer(204));
}

}  // namespace gruca::service::s3
