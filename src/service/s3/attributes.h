// service/s3/attributes.h
//
// What S3 keeps of an object beside its body, and how it lies in the store: as JSON in the object's
// attributes. Objects that others wrote (jobs, `gruca store`) have
// none; what a client is told of them is derived.
//
// Pure values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "service/s3/checksum.h"
#include "service/s3/request.h"
#include "store/object_store.h"

namespace gruca::service::s3 {

struct Checksum {
    Algorithm algorithm = Algorithm::crc32;
    std::string value;           // Base64; "…-3" for one composed of three parts'.
    bool is_full_object = true;  // Of the whole body, not of its parts' checksums.
};

struct Attributes {
    std::string etag;  // MD5 in hex, or "md5-N" of an object made of N parts; without quotes.
    std::optional<Checksum> checksum = {};
    std::map<std::string, std::string> headers = {};   // "Content-Type" and its like.
    std::map<std::string, std::string> metadata = {};  // Without "x-amz-meta-".
    std::string upload_id = {};  // Of the multipart upload that it comes from.

    std::string to_text() const;
    static Attributes from_text(const std::string& text);
};

// Of an object in the store, whoever wrote it; attributes that cannot be read or answered with are
// as good as none. An ETag that is no MD5 ends in "-1", as those of multipart objects do, so that
// no client takes it for one.
Attributes attributes_of(const store::ObjectInfo& info);

// The headers and metadata of a request that stay with the object. Throws MetadataTooLarge.
Attributes attributes_in(const Request& request);

// ETag, Last-Modified, Content-Type and so on, as GET and HEAD answer. The checksum is told only
// when asked for.
net::Headers headers_of(const store::ObjectInfo& info, const Attributes& attributes,
                        bool with_checksum);

std::string with_quotes(const std::string& etag);

}  // namespace gruca::service::s3
