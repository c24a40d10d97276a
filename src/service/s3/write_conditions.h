// service/s3/write_conditions.h
//
// The conditions that a write may have: If-None-Match: * and If-Match. Whoever commits looks at
// If-Match under the object's lock, as the last thing before.
//
// Thread-safe.
#pragma once

#include "service/s3/request.h"
#include "store/object_store.h"

namespace gruca::service::s3 {

// True: only when the key is absent. Throws NotImplemented for an If-None-Match that names a tag.
bool only_if_absent(const Request& request);

// Throws NoSuchKey or PreconditionFailed where the request has an If-Match that what lies in the
// store does not fit.
void require_match(const Request& request, const store::ObjectStore& store);

}  // namespace gruca::service::s3
