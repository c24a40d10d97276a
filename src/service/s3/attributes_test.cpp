#include "service/s3/attributes.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

Attributes kept_of(net::Headers headers) {
    const net::HttpRequest head{.method = "PUT", .target = "/bucket/key", .headers = headers};
    return Attributes::from_text(attributes_in(Request(head)).to_text());
}

store::ObjectInfo object_with(std::string attributes) {
    return {.key = "bucket/key", .etag = "opaque", .attributes = std::move(attributes)};
}

TEST(S3Attributes, what_is_kept_is_read_back) {
    const Attributes written{.etag = "0123-2",
                             .checksum = Checksum{.algorithm = Algorithm::crc32c,
                                                  .value = "AAAAAA==-2",
                                                  .is_full_object = false},
                             .headers = {{"Content-Type", "text/plain"}, {"Expires", "never"}},
                             .metadata = {{"name", "J\xc3\xbcrgen, \"quoted\""}},
                             .upload_id = "abc"};
    const Attributes read = attributes_of(object_with(written.to_text()));
    EXPECT_EQ(read.etag, written.etag);
    ASSERT_TRUE(read.checksum);
    EXPECT_EQ(read.checksum->value, written.checksum->value);
    EXPECT_FALSE(read.checksum->is_full_object);
    EXPECT_EQ(read.headers, written.headers);
    EXPECT_EQ(read.metadata, written.metadata);
    EXPECT_EQ(read.upload_id, written.upload_id);
}

TEST(S3Attributes, a_header_that_is_not_utf8_is_kept_so_that_it_can_be_read) {
    const Attributes kept = kept_of(
        {{"Content-Disposition", "attachment; filename=\xdc.txt"}, {"x-amz-meta-name", "\xdc"}});
    EXPECT_TRUE(is_utf8(kept.headers.at("Content-Disposition")));
    EXPECT_TRUE(is_utf8(kept.metadata.at("name")));
}

TEST(S3Attributes, what_cannot_be_read_or_answered_with_is_as_good_as_none) {
    const std::string none = attributes_of(object_with("")).etag;
    EXPECT_TRUE(none.ends_with("-1"));
    for (const char* junk : {
             "x",
             "{",
             "\xdc",
             "[]",
             "{}",
             R"({"etag": 1})",
             R"({"etag": ""})",
             R"({"etag": "a\"b"})",
             R"({"etag": "a", "headers": 1})",
             R"({"etag": "a", "headers": {"Content-Type": "a\r\nb: c"}})",
             R"({"etag": "a", "headers": {"Content-Length": "7"}})",
             R"({"etag": "a", "metadata": {"a: b\r\nc": "d"}})",
             R"({"etag": "a", "metadata": {"a": "\u0000"}})",
             R"({"etag": "a", "checksum": {"algorithm": "crc32", "value": "\r\n"}})",
         }) {
        const Attributes attributes = attributes_of(object_with(junk));
        EXPECT_EQ(attributes.etag, none) << junk;
        EXPECT_TRUE(attributes.headers.empty() && attributes.metadata.empty()) << junk;
    }
}

}  // namespace
}  // namespace gruca::service::s3
