#include "service/s3/known.h"

#include <gtest/gtest.h>

#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

std::string refusal_of(const char* method, const std::string& target, net::Headers headers = {}) {
    const net::HttpRequest head{.method = method, .target = target, .headers = headers};
    try {
        require_known(Request(head));
    } catch (const Refusal& refusal) {
        return refusal.fault.code;
    }
    return "";
}

TEST(S3Known, what_is_not_known_does_not_become_a_plain_put_or_delete) {
    const std::pair<const char*, const char*> cases[] = {
        {"PUT", "/b/k?renameObject"},
        {"PUT", "/b/k?tagging"},
        {"PUT", "/b/k?acl"},
        {"PUT", "/b?versioning"},
        {"PUT", "/b?x"},
        {"DELETE", "/b?metadataTable"},
        {"DELETE", "/b?policy"},
        {"DELETE", "/b/k?tagging"},
        {"DELETE", "/b/k?uploads"},
        {"POST", "/b/k?restore"},
        {"POST", "/b/k?select"},
        {"GET", "/b?session"},
        {"GET", "/b/k?attributes"},
        {"GET", "/b/k?versionId=abc"},
        {"HEAD", "/b/k?uploadId=1"},
        {"PUT", "/b/k?partnumber=1"},
        {"PUT", "/b/k?X-Amz-Copy-Source=b%2Fa"},
        {"PUT", "/b/k?x-amz-write-offset-bytes=4"},
    };
    for (const auto& [method, target] : cases) {
        EXPECT_EQ(refusal_of(method, target), "NotImplemented") << method << " " << target;
    }
}

TEST(S3Known, a_header_that_makes_another_operation_of_it_is_refused) {
    for (const char* name : {"x-amz-write-offset-bytes", "X-Amz-Rename-Source",
                             "x-amz-if-match-size", "x-amz-if-match-last-modified-time"}) {
        EXPECT_EQ(refusal_of("PUT", "/b/k", {{name, "4"}}), "NotImplemented") << name;
    }
}

TEST(S3Known, what_can_be_read_and_is_never_there_says_so) {
    EXPECT_EQ(refusal_of("GET", "/b?policy"), "NoSuchBucketPolicy");
    EXPECT_EQ(refusal_of("GET", "/b/k?tagging"), "NoSuchTagSet");
}

TEST(S3Known, what_clients_send_is_taken) {
    const std::pair<const char*, const char*> cases[] = {
        {"GET", "/?max-buckets=10"},
        {"GET",
         "/b?list-type=2&prefix=a&delimiter=/&max-keys=1&encoding-type=url&fetch-owner=true"},
        {"GET", "/b?marker=a"},
        {"GET", "/b?uploads&key-marker=a&upload-id-marker=b&max-uploads=1"},
        {"GET", "/b?location"},
        {"POST", "/b?delete"},
        {"PUT", "/b/k?partNumber=1&uploadId=a&x-id=UploadPart"},
        {"POST", "/b/k?uploads"},
        {"DELETE", "/b/k?versionId=null"},
        {"GET", "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0&response-expires=1"},
        {"GET", "/b/k?AWSAccessKeyId=a&Signature=b&Expires=1"},
        {"PUT", "/b/k?x-amz-checksum-crc32=AAAAAA%3D%3D"},
    };
    for (const auto& [method, target] : cases) {
        EXPECT_EQ(refusal_of(method, target), "") << method << " " << target;
    }
}

}  // namespace
}  // namespace gruca::service::s3
