// cli/store_copy.h
//
// Copies between files and the store, one object or a whole tree, in pieces of a few MiB. A file
// appears whole or not at all, as an object does.
#pragma once

#include <cstdint>
#include <string>

#include "cli/context.h"
#include "store/object_store.h"

namespace gruca::cli {

struct CopyRequest {
    std::string from;  // A path, or "s3://bucket/key".
    std::string to;
    bool recursive = false;
};

struct CopyResult {
    std::uint64_t objects = 0;
    std::uint64_t bytes = 0;
};

// Throws not_found when there is nothing to copy, invalid_argument when neither side is in the
// store or a key cannot be a file name. Large copies show how far they are, on a terminal.
CopyResult copy_objects(Context& context, store::ObjectStore& objects, const CopyRequest& request);

}  // namespace gruca::cli
