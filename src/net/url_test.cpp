#include "net/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "net/http.h"

namespace gruca::net {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Url, encoding_keeps_only_unreserved_characters) {
    EXPECT_EQ(percent_encode("a b/c~\xC3\xA9+"), "a%20b%2Fc~%C3%A9%2B");
    EXPECT_EQ(percent_encode("a/b", true), "a/b");
}

TEST(Url, decoding_undoes_encoding_for_every_byte) {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) every_byte.push_back(static_cast<char>(byte));
    EXPECT_EQ(percent_decode(percent_encode(every_byte)), every_byte);
}

TEST(Url, a_broken_escape_is_refused) {
    for (const char* text : {"%", "%4", "a%zz", "%4g", "abc%e"}) {
        EXPECT_THROW(percent_decode(text), Error) << text;
    }
    EXPECT_EQ(percent_decode("%41"), "A");  // An escape may stand at the very end.
}

TEST(Url, a_query_is_split_then_decoded) {
    EXPECT_THAT(parse_query("a=1%262&b&c=x=y&&d=+"),
                ElementsAre(Pair("a", "1&2"), Pair("b", ""), Pair("c", "x=y"), Pair("d", "+")));
    EXPECT_THAT(parse_query("d=a+b%2B", true), ElementsAre(Pair("d", "a b+")));
    EXPECT_THAT(parse_query(""), IsEmpty());
}

TEST(Url, a_query_of_marks_alone_costs_nothing_and_one_of_many_fields_is_refused) {
    EXPECT_THAT(parse_query(std::string(16u << 20, '&')), IsEmpty());
    std::string many = "a";
    for (std::size_t i = 1; i < kQueryFieldsMax; ++i) many += "&a";
    EXPECT_EQ(parse_query(many).size(), kQueryFieldsMax);
    EXPECT_THROW(parse_query(many + "&a"), Error);
}

TEST(Url, an_origin_is_scheme_host_and_port_and_nothing_else) {
    EXPECT_EQ(parse_origin("http://127.0.0.1:7717/").port, 7717);
    EXPECT_EQ(parse_origin("http://localhost:80").host, "localhost");
    for (const char* url :
         {"", "127.0.0.1:80", "https://a:1", "http://a", "http://:1", "http://a:0",
          "http://a:65536", "http://a:1/x", "http://user@a:1", "http://a:1 "}) {
        EXPECT_THROW(parse_origin(url), Error) << url;
    }
}

TEST(Url, an_s3_uri_has_a_bucket_and_perhaps_a_key) {
    EXPECT_EQ(parse_s3_uri("s3://b/k/x"), (S3Uri{.bucket = "b", .key = "k/x"}));
    EXPECT_EQ(parse_s3_uri("s3://b"), (S3Uri{.bucket = "b", .key = ""}));
    EXPECT_EQ(parse_s3_uri("s3://b/").text(), "s3://b/");
    for (const char* uri : {"", "b/k", "s3://", "s3:///k", "s3://b//k", "S3://b/k"}) {
        EXPECT_THROW(parse_s3_uri(uri), Error) << uri;
    }
}

TEST(Http, header_names_compare_without_regard_to_case) {
    Headers headers{{"Content-Type", "a"}, {"X-One", "1"}, {"x-one", "2"}};
    EXPECT_EQ(headers.find("content-type"), "a");
    EXPECT_EQ(headers.find("X-ONE"), "1");
    EXPECT_EQ(headers.find("X-Two"), std::nullopt);
    headers.set("X-ONE", "3");
    EXPECT_EQ(headers.find("x-one"), "3");
    EXPECT_EQ(headers.fields().size(), 2u);
    headers.remove("CONTENT-type");
    EXPECT_EQ(headers.find("content-type"), std::nullopt);
}

TEST(Http, a_target_splits_into_path_and_query) {
    const HttpRequest request{.method = "GET", .target = "/b/k%20x?a=1?2"};
    EXPECT_EQ(request.path(), "/b/k%20x");
    EXPECT_EQ(request.query(), "a=1?2");
    EXPECT_EQ((HttpRequest{.method = "GET", .target = "/"}).query(), "");
}

}  // namespace
}  // namespace gruca::net
