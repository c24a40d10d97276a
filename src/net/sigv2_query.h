// net/sigv2_query.h
//
// URLs signed the old way: AWSAccessKeyId, Expires and Signature in the query. boto3 makes them for
// the older regions unless told otherwise, so whoever presigns with its defaults needs them taken.
// The scheme signs neither the host nor every field of the query; fields that it leaves out are
// therefore refused here, but for those that carry the signature.
//
// Pure functions, thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net/sigv4_s3.h"

namespace gruca::net {

bool has_v2_query(const HttpRequest& head);

// The payload is not signed; the scope's region is empty.
VerifyS3Result verify_v2_query(
    const HttpRequest& head, TimePoint now,
    const std::function<std::optional<KnownKey>(const std::string& access_key)>& find_key);

}  // namespace gruca::net
