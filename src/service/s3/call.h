// service/s3/call.h
//
// One request for objects on its way to an operation, and the answers that operations give.
#pragma once

#include <optional>
#include <string>

#include "net/http_stream.h"
#include "net/sigv4_payload.h"
#include "service/s3/attributes.h"
#include "service/s3/refusal.h"
#include "service/s3/s3_service.h"
#include "service/s3/xml.h"

namespace gruca::service::s3 {

struct S3Service::Call {
    net::HttpStream& stream;
    const Request& request;
    std::string request_id;
    KeyKind kind = KeyKind::admin;
    net::PayloadRule payload = {};

    net::HttpResponse answer(int status = 200) const {
        return {.status = status, .headers = {{"x-amz-request-id", request_id}}};
    }
    void send(net::HttpResponse response) const { stream.send(std::move(response)); }
    void send_xml(std::string text, int status = 200) const {
        net::HttpResponse response = answer(status);
        response.headers.add("Content-Type", "application/xml");
        response.body = std::move(text);
        send(std::move(response));
    }
};

// What came of a body that was received.
struct Received {
    std::string md5;  // Raw.
    std::optional<Checksum> checksum = {};
};

// Reads the body into `writer`, and holds it against its signature, Content-MD5, checksum header or
// trailer. Throws a Refusal (BadDigest, IncompleteBody, EntityTooLarge, …); then nothing may be
// committed. `otherwise` is computed when the client names no checksum.
Received receive_body(net::HttpStream& stream, const net::PayloadRule& rule, const Request& request,
                      store::ObjectWriter& writer, std::optional<Algorithm> otherwise = {});

// What a checksum header beside a document is of: in a completion it is of the object.
enum class Told { of_document, of_object };

// A document of at most kXmlBytesMax bytes, held against all of that likewise.
std::string receive_document(net::HttpStream& stream, const net::PayloadRule& rule,
                             const Request& request, Told told);

// Puts attributes beside the body; where the file system keeps none, refuses those that would be
// missed.
void keep_attributes(store::ObjectWriter& writer, const Attributes& attributes);

}  // namespace gruca::service::s3
