#include "service/s3/request.h"

#include <gtest/gtest.h>

#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

net::HttpRequest get(const std::string& target) {
    return {.method = "GET", .target = target};
}

template <class Call>
std::string refusal_of(Call call) {
    try {
        call();
    } catch (const Refusal& refusal) {
        return refusal.fault.code;
    }
    return "";
}

TEST(S3Request, keys_are_what_decoding_gives_and_nothing_is_normalised) {
    const std::pair<const char*, const char*> cases[] = {
        {"/b/a%20b", "a b"},   {"/b/a+b", "a+b"},     {"/b/a%252Fb", "a%2Fb"}, {"/b//a", "/a"},
        {"/b/a//b/", "a//b/"}, {"/b/../x", "../x"},   {"/b/%00", {}},          {"/b/%C3%A9", "é"},
        {"/b/a%2Fb", "a/b"},   {"/b/a?prefix=/", "a"}};
    for (const auto& [target, key] : cases) {
        const net::HttpRequest head = get(target);
        const Request request(head);
        EXPECT_EQ(request.bucket(), "b");
        EXPECT_EQ(request.key(), key ? std::string(key) : std::string(1, '\0')) << target;
    }
}

TEST(S3Request, paths_that_are_no_text_are_refused) {
    for (const char* target : {"/b/%ff", "/b/%4", "/b/%zz", "/%c3/x", "/b/a?prefix=%f"}) {
        const net::HttpRequest head = get(target);
        EXPECT_EQ(refusal_of([&] { Request request(head); }), "InvalidURI") << target;
    }
    const net::HttpRequest longest = get("/b/" + std::string(1024, 'k'));
    EXPECT_EQ(Request(longest).key().size(), 1024u);
    const net::HttpRequest longer = get("/b/" + std::string(1025, 'k'));
    EXPECT_EQ(refusal_of([&] { Request request(longer); }), "KeyTooLongError");
}

TEST(S3Request, the_products_own_directories_and_parts_of_buckets_are_no_buckets) {
    for (const char* name : {"b", "My_Bucket", "a.b"}) EXPECT_TRUE(may_be_bucket(name)) << name;
    for (const char* name : {"", ".", "..", ".gruca", "a/b", "/"}) {
        EXPECT_FALSE(may_be_bucket(name)) << name;
    }
}

TEST(S3Request, ranges_are_clipped_ignored_or_refused) {
    struct Case {
        const char* header;
        std::uint64_t size, begin, bytes;
    };
    for (const Case& one :
         {Case{"bytes=0-0", 10, 0, 1}, Case{"bytes=4-", 10, 4, 6}, Case{"bytes=4-99", 10, 4, 6},
          Case{"bytes=-3", 10, 7, 3}, Case{"bytes=-99", 10, 0, 10}, Case{"bytes=9-9", 10, 9, 1}}) {
        const auto range = range_of(std::string(one.header), one.size);
        ASSERT_TRUE(range) << one.header;
        EXPECT_EQ(range->begin, one.begin) << one.header;
        EXPECT_EQ(range->bytes, one.bytes) << one.header;
    }
    for (const char* header : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2",
                               "bytes=1-2,4-5", "items=1-2", "bytes=99999999999999999999-"}) {
        EXPECT_FALSE(range_of(std::string(header), 10)) << header;
    }
    EXPECT_FALSE(range_of(std::nullopt, 10));
    for (const auto& [header, size] : {std::pair{"bytes=10-", 10u},
                                       {"bytes=11-12", 10u},
                                       {"bytes=-0", 10u},
                                       {"bytes=0-", 0u},
                                       {"bytes=-1", 0u}}) {
        EXPECT_EQ(refusal_of([&, h = std::string(header), s = size] { range_of(h, s); }),
                  "InvalidRange")
            << header;
    }
}

TEST(S3Request, copy_sources_are_decoded_once) {
    EXPECT_EQ(copy_source_of("b/a%2520b").key, "a%20b");
    EXPECT_EQ(copy_source_of("/b/a+b/c").key, "a+b/c");
    EXPECT_EQ(copy_source_of("b/k?versionId=null").key, "k");
    EXPECT_EQ(copy_source_of("b/%3FversionId").key, "?versionId");
    for (const char* source : {"", "/", "b", "b/", "/b/", "//k"}) {
        EXPECT_EQ(refusal_of([&] { copy_source_of(source); }), "InvalidArgument") << source;
    }
    EXPECT_EQ(refusal_of([&] { copy_source_of("b/k?versionId=7"); }), "NotImplemented");
}

TEST(S3Request, a_tag_that_is_given_decides_over_a_time) {
    const TimePoint modified = time_from_ms(1'800'000'000'999);
    const std::string then = http_date(modified),
                      before = http_date(time_from_ms(1'700'000'000'000));
    const auto answer = [&](net::Headers headers) -> std::string {
        const net::HttpRequest head{
            .method = "GET", .target = "/b/k", .headers = std::move(headers)};
        const Request request(head);
        bool not_modified = false;
        const std::string refusal =
            refusal_of([&] { not_modified = is_not_modified(request, "", "tag", modified); });
        return !refusal.empty() ? refusal : not_modified ? "304" : "200";
    };
    EXPECT_EQ(answer({}), "200");
    EXPECT_EQ(answer({{"If-Match", "\"tag\""}, {"If-Unmodified-Since", before}}), "200");
    EXPECT_EQ(answer({{"If-Match", "\"a\", \"tag\""}}), "200");
    EXPECT_EQ(answer({{"If-Match", "\"other\""}}), "PreconditionFailed");
    EXPECT_EQ(answer({{"If-Unmodified-Since", before}}), "PreconditionFailed");
    EXPECT_EQ(answer({{"If-Unmodified-Since", then}}), "200");
    EXPECT_EQ(answer({{"If-None-Match", "\"tag\""}, {"If-Modified-Since", before}}), "304");
    EXPECT_EQ(answer({{"If-None-Match", "\"other\""}, {"If-Modified-Since", then}}), "200");
    EXPECT_EQ(answer({{"If-Modified-Since", then}}), "304");
    EXPECT_EQ(answer({{"If-Modified-Since", "no date"}}), "200");
}

TEST(S3Request, dates_are_those_of_http) {
    EXPECT_EQ(http_date(time_from_ms(784'111'777'000)), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(time_of_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), time_from_ms(784'111'777'000));
    EXPECT_FALSE(time_of_http_date("Sun, 06 Nov 1994 08:49:37 GMT+1"));
}

TEST(S3Request, bucket_names_are_those_of_s3) {
    for (const char* name : {"abc", "a.b-c", "0-9"}) require_bucket_name(name);
    for (const std::string& name :
         {std::string("ab"), std::string(64, 'a'), std::string("Abc"), std::string("a_b"),
          std::string("-ab"), std::string("ab."), std::string("a..b")}) {
        EXPECT_EQ(refusal_of([&] { require_bucket_name(name); }), "InvalidBucketName") << name;
    }
}

}  // namespace
}  // namespace gruca::service::s3
