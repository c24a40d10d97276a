// service/s3/listing.h
//
// Listing a bucket as S3 does: keys in byte order, those that share a prefix up to a delimiter
// rolled up into one, in pages that count both.
//
// Pure but for reading the store; thread-safe as the store is.
#pragma once

#include <string>
#include <vector>

#include "store/object_store.h"

namespace gruca::service::s3 {

struct ListQuery {
    std::string bucket;
    std::string prefix = {};
    std::string delimiter = {};  // Empty: nothing is rolled up.
    std::string after = {};      // Only what is greater; may be a common prefix of an earlier page.
    std::size_t max = 1000;
};

struct Listing {
    std::vector<store::ObjectInfo> objects;  // Keys without the bucket.
    std::vector<std::string> common_prefixes;
    bool truncated = false;
    std::string last;  // Of this page, key or common prefix: what the next is `after`.
};

Listing list_bucket(const store::ObjectStore& store, const ListQuery& query);

}  // namespace gruca::service::s3
