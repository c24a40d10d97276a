// service/s3/checksum.h
//
// The digests that S3 clients send of bodies, computed as bytes go by: MD5 for the ETag, and the
// one that x-amz-checksum-* names.
//
// Owned by one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gruca::service::s3 {

enum class Algorithm { crc32, crc32c, crc64nvme, sha1, sha256 };

// "crc32c", as in the header x-amz-checksum-crc32c; "CRC32C" in other places.
const char* header_suffix(Algorithm algorithm);
std::string upper_name(Algorithm algorithm);
std::optional<Algorithm> algorithm_from(std::string_view name);  // In any case.

class Digest {
  public:
    virtual ~Digest() = default;
    virtual void update(std::span<const std::byte> bytes) = 0;
    virtual std::string finish() = 0;  // The raw bytes, big-endian. Once.
};

std::unique_ptr<Digest> make_md5();
std::unique_ptr<Digest> make_digest(Algorithm algorithm);

std::string hex_of(std::string_view raw);
std::string base64_of(std::string_view raw);

}  // namespace gruca::service::s3
