#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "service/s3/call.h"

namespace gruca::service::s3 {
namespace {

constexpr std::size_t kPieceBytes = 512u << 10;
constexpr std::string_view kChecksumPrefix = "x-amz-checksum-";

[[noreturn]] void refuse_payload(net::PayloadFault fault, const std::string& detail) {
    switch (fault) {
        case net::PayloadFault::hash_mismatch:
            refuse(400, "XAmzContentSHA256Mismatch",
                   "The provided 'x-amz-content-sha256' header does not match what was computed.");
        case net::PayloadFault::signature_mismatch:
            refuse(403, "SignatureDoesNotMatch", detail);
        case net::PayloadFault::malformed:
            refuse(400, "InvalidRequest", detail);
        case net::PayloadFault::wrong_length:
            refuse(400, "IncompleteBody",
                   "You did not provide the number of bytes specified by the Content-Length HTTP "
                   "header: " +
                       detail);
    }
    refuse(400, "InvalidRequest", detail);
}

void require_length(const net::HttpStream& stream, const net::PayloadRule& rule) {
    const auto bytes = rule.decoded_bytes ? rule.decoded_bytes : stream.body_bytes();
    if (!bytes) refuse(411, "MissingContentLength", "You must provide the Content-Length header.");
    if (*bytes > kPutBytesMax) {
        refuse(400, "EntityTooLarge",
               fmt::format("Your proposed upload exceeds the maximum allowed size: {} bytes, at "
                           "most {}; use a multipart upload",
                           *bytes, kPutBytesMax));
    }
}

// The algorithm that the client has named: by a value in a header, by a trailer, or by name alone.
std::optional<Algorithm> announced(const Request& request, const net::PayloadRule& rule) {
    std::optional<Algorithm> found;
    const auto see = [&](std::string_view name) {
        if (!name.starts_with(kChecksumPrefix)) return;
        const auto algorithm = algorithm_from(name.substr(kChecksumPrefix.size()));
        if (!algorithm) return;
        if (found && *found != *algorithm) {
            refuse(400, "InvalidRequest", "Expecting a single x-amz-checksum- header");
        }
        found = algorithm;
    };
    for (const auto& [name, value] : request.headers().fields()) see(to_lower(name));
    for (const std::string& name : rule.trailers) see(name);
    if (found) return found;
    const auto named = request.header("x-amz-sdk-checksum-algorithm");
    return named ? algorithm_from(*named) : std::nullopt;
}

std::optional<std::string> told_checksum(Algorithm algorithm, const Request& request,
                                         const net::Headers& trailers) {
    const std::string name = std::string(kChecksumPrefix) + header_suffix(algorithm);
    if (auto value = request.header(name)) return value;
    return trailers.find(name);
}

void require_md5(const Request& request, const std::string& md5) {
    const auto told = request.header("Content-MD5");
    if (!told) return;
    const auto raw = from_base64(*told);
    if (!raw || raw->size() != md5.size()) {
        refuse(400, "InvalidDigest", "The Content-MD5 you specified is not valid.");
    }
    if (text_of(*raw) != md5) {
        refuse(400, "BadDigest", "The Content-MD5 you specified did not match what we received.");
    }
}

// What is computed of a body as it comes, and in the end held against what its client says of it.
class Digests {
  public:
    explicit Digests(std::optional<Algorithm> algorithm)
        : algorithm_(algorithm), digest_(algorithm ? make_digest(*algorithm) : nullptr) {}

    void update(std::span<const std::byte> piece) {
        md5_->update(piece);
        if (digest_) digest_->update(piece);
    }

    Received finish(const Request& request, const net::Headers& trailers) {
        Received received{.md5 = md5_->finish()};
        require_md5(request, received.md5);
        if (!digest_) return received;
        const std::string value = base64_of(digest_->finish());
        const auto told = told_checksum(*algorithm_, request, trailers);
        if (told && *told != value) {
            refuse(400, "BadDigest",
                   fmt::format("The {} you specified did not match what we received.",
                               upper_name(*algorithm_)));
        }
        received.checksum = Checksum{.algorithm = *algorithm_, .value = value};
        return received;
    }

  private:
    const std::unique_ptr<Digest> md5_ = make_md5();
    const std::optional<Algorithm> algorithm_;
    const std::unique_ptr<Digest> digest_;  // Null without an algorithm.
};

}  // namespace

Received receive_body(net::HttpStream& stream, const net::PayloadRule& rule, const Request& request,
                      store::ObjectWriter& writer, std::optional<Algorithm> otherwise) {
    require_length(stream, rule);
    const auto named = announced(request, rule);
    Digests digests(named ? named : otherwise);
    net::SignedPayload payload(rule);
    std::vector<std::byte> buffer(kPieceBytes);
    while (const std::size_t bytes = stream.read(buffer)) {
        const std::span<const std::byte> piece = payload.take(std::span(buffer).first(bytes));
        if (payload.fault()) break;
        digests.update(piece);
        writer.write(piece);
        if (payload.decoded_bytes() > kPutBytesMax) {
            refuse(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
        }
    }
    if (const auto fault = payload.finish()) refuse_payload(*fault, payload.detail());
    return digests.finish(request, payload.trailers());
}

std::string receive_document(net::HttpStream& stream, const net::PayloadRule& rule,
                             const Request& request, Told told) {
    Digests digests(told == Told::of_document ? announced(request, rule) : std::nullopt);
    net::SignedPayload payload(rule);
    std::string document;
    std::vector<std::byte> buffer(64u << 10);
    while (const std::size_t bytes = stream.read(buffer)) {
        document += text_of(payload.take(std::span(buffer).first(bytes)));
        if (payload.fault()) break;
        if (document.size() > kXmlBytesMax) {
            refuse(400, "MalformedXML",
                   fmt::format("a document of more than {} bytes", kXmlBytesMax));
        }
    }
    if (const auto fault = payload.finish()) refuse_payload(*fault, payload.detail());
    digests.update(bytes_of(document));
    digests.finish(request, payload.trailers());
    return document;
}

void keep_attributes(store::ObjectWriter& writer, const Attributes& attributes) {
    const std::string text = attributes.to_text();
    if (text.size() > store::kAttributesBytesMax) {
        refuse(400, "MetadataTooLarge",
               "Your headers and metadata exceed the maximum allowed size together");
    }
    if (writer.set_attributes(text)) return;
    if (attributes.metadata.empty() && attributes.headers.empty()) return;
    refuse(501, "NotImplemented",
           "The file system of the service's data directory keeps no extended attributes, and so "
           "no types and metadata of objects.");
}

}  // namespace gruca::service::s3
