#include "service/s3/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace gruca::service::s3 {
namespace {

std::string digest_of(Digest& digest, std::string_view text, std::size_t piece) {
    while (!text.empty()) {
        digest.update(bytes_of(text.substr(0, piece)));
        text.remove_prefix(std::min(piece, text.size()));
    }
    return base64_of(digest.finish());
}

struct Vector {
    Algorithm algorithm;
    const char* name;
    const char* of_digits;  // Of "123456789", in base64; the SHAs have vectors of their own below.
};

constexpr Vector kVectors[] = {
    {Algorithm::crc32, "CRC32", "y/Q5Jg=="},
    {Algorithm::crc32c, "CRC32C", "4waSgw=="},
    {Algorithm::crc64nvme, "CRC64NVME", "rosUhgp5mIg="},
    {Algorithm::sha1, "SHA1", ""},
    {Algorithm::sha256, "SHA256", ""},
};

TEST(S3Checksum, equals_the_published_values_however_the_body_is_cut) {
    for (const Vector& vector : kVectors) {
        if (vector.algorithm >= Algorithm::sha1) continue;
        for (const std::size_t piece : {1u, 2u, 9u}) {
            EXPECT_EQ(digest_of(*make_digest(vector.algorithm), "123456789", piece),
                      vector.of_digits)
                << vector.name;
        }
    }
    EXPECT_EQ(digest_of(*make_digest(Algorithm::sha1), "abc", 2), "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
    EXPECT_EQ(digest_of(*make_digest(Algorithm::sha256), "abc", 2),
              "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

TEST(S3Checksum, long_bodies_in_odd_pieces_equal_those_at_once) {
    std::string body;
    for (int i = 0; i < 100'003; ++i) body += static_cast<char>(i * 7 + i / 256);
    for (const Vector& vector : kVectors) {
        EXPECT_EQ(digest_of(*make_digest(vector.algorithm), body, 4097),
                  digest_of(*make_digest(vector.algorithm), body, body.size()))
            << vector.name;
    }
}

TEST(S3Checksum, the_etag_is_the_md5_in_hex) {
    const auto md5 = make_md5();
    md5->update(bytes_of("bar"));
    EXPECT_EQ(hex_of(md5->finish()), "37b51d194a7513e45b56f6524f2d51f2");
    EXPECT_EQ(hex_of(make_md5()->finish()), "d41d8cd98f00b204e9800998ecf8427e");
}

TEST(S3Checksum, names_are_known_in_any_case_and_no_others) {
    for (const Vector& vector : kVectors) {
        EXPECT_EQ(algorithm_from(vector.name), vector.algorithm);
        EXPECT_EQ(algorithm_from(header_suffix(vector.algorithm)), vector.algorithm);
        EXPECT_EQ(upper_name(vector.algorithm), vector.name);
    }
    for (const char* name : {"", "md5", "crc", "crc32 ", "crc64"})
        EXPECT_FALSE(algorithm_from(name));
}

}  // namespace
}  // namespace gruca::service::s3
