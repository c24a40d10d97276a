// service/s3/upload.h
//
// A multipart upload. Until it is completed it lies in a store of its own, as
//
//   <bucket>/<upload id>/head         what the object will be: key, attributes
//   <bucket>/<upload id>/part-00001   each part, with its own attributes
//
// and completing it is an ordinary put of all parts one after another. A kill at any moment leaves
// the upload, to be completed again.
//
// Pure values and functions, except those that look into the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "service/s3/attributes.h"
#include "service/s3/checksum.h"
#include "service/s3/request.h"
#include "store/object_store.h"

namespace gruca::service::s3 {

struct UploadHead {
    std::string key;
    Attributes attributes;
    std::optional<Algorithm> algorithm = {};
    bool is_full_object = false;

    std::string to_text() const;
    static UploadHead from_text(const std::string& text);
};

// "<bucket>/<upload id>/" of the upload that the request names. Refuses what names none.
std::string upload_place_of(const Request& request);

std::int64_t part_number_of(const Request& request);
std::string part_name(std::int64_t number);  // "part-00001"

UploadHead read_upload_head(const store::ObjectReader& reader);

// Nothing when there is no such upload. Refuses when it is of another key.
std::optional<UploadHead> find_upload_head(const store::ObjectStore& uploads,
                                           const Request& request);
[[noreturn]] void refuse_no_upload();
UploadHead upload_head_of(const store::ObjectStore& uploads, const Request& request);

}  // namespace gruca::service::s3
