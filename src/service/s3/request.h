// service/s3/request.h
//
// The head of a request for objects, taken apart: which bucket and key, which sub-resource, what is
// asked and on what conditions. Path style only ("/bucket/key"); keys are what percent-decoding
// gives, nothing is normalised. Source: the S3 API reference.
//
// Pure; thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/http.h"

namespace gruca::service::s3 {

constexpr std::size_t kKeyBytesMax = 1024;
constexpr std::size_t kUserMetadataBytesMax = 2048;

class Request {
  public:
    // Throws a Refusal for a path that is not percent-encoded UTF-8, or too long a key.
    explicit Request(const net::HttpRequest& head);

    const std::string& method() const { return head_.method; }
    const std::string& bucket() const { return bucket_; }        // Empty: the service itself.
    const std::string& key() const { return key_; }              // Empty: the bucket itself.
    std::string object() const { return bucket_ + "/" + key_; }  // The key in the store.

    bool asks(const std::string& parameter) const { return query_.contains(parameter); }
    std::string parameter(const std::string& name, const std::string& otherwise = "") const;
    // Throws InvalidArgument unless it is a whole number in the range.
    std::int64_t number(const std::string& name, std::int64_t otherwise, std::int64_t least,
                        std::int64_t most) const;
    std::optional<std::string> header(std::string_view name) const {
        return head_.headers.find(name);
    }
    const net::Headers& headers() const { return head_.headers; }
    const std::map<std::string, std::string>& query() const { return query_; }

  private:
    const net::HttpRequest& head_;
    std::string bucket_;
    std::string key_;
    std::map<std::string, std::string> query_;
};

struct ByteRange {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
};

// The part of an object of `size` bytes that a Range header asks for; nothing when it is to be
// ignored (absent, malformed, several ranges). Throws InvalidRange (416) when no byte is meant.
std::optional<ByteRange> range_of(const std::optional<std::string>& header, std::uint64_t size);

// "/bucket/key" or "bucket/key", percent-encoded, perhaps with ?versionId=null.
struct CopySource {
    std::string bucket;
    std::string key;
};
CopySource copy_source_of(const std::string& header);

// If-Match and its relatives, for an object with this ETag and time. `prefix` is empty or
// "x-amz-copy-source-". Throws PreconditionFailed; true means that a reader has this version
// already (304).
bool is_not_modified(const Request& request, const std::string& prefix, const std::string& etag,
                     TimePoint modified);
// An ETag in a list of quoted ones, or "*".
bool matches_etag(const std::string& list, const std::string& etag);

std::string http_date(TimePoint time);  // "Tue, 01 Dec 2026 09:30:00 GMT"
std::optional<TimePoint> time_of_http_date(const std::string& text);

// Whether there can be a bucket of this name: the store has directories of other names, too, which
// are the product's own (".gruca") or lie in a bucket ("a/b"). Wider than what can be created.
bool may_be_bucket(std::string_view name);
// Throws InvalidBucketName unless it is 3 to 63 lower-case letters, digits, dots and hyphens,
// beginning and ending with a letter or digit.
void require_bucket_name(const std::string& bucket);

}  // namespace gruca::service::s3
