// service/s3/known.h
//
// What a request may ask for by its query and headers. S3 has many sub-resources and conditions,
// and more every year: one that is not known here would fall through to a plain put or delete and
// do what nobody asked for, so it is refused by its name.
//
// Pure; thread-safe.
#pragma once

#include "service/s3/request.h"

namespace gruca::service::s3 {

// Throws NotImplemented, or for a sub-resource that can be read and is never there (a policy, tags)
// the error of a bucket that has none. Parameters that belong to a signature, or begin with "x-"
// and mean nothing to S3, are taken with every request.
void require_known(const Request& request);

}  // namespace gruca::service::s3
