// verify_s3 and SignedPayload, held against Amazon's published examples, against botocore (recorded
// below), and against what an attacker would change.
#include "net/sigv4_s3.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "net/sigv4_payload.h"

namespace gruca::net {
namespace {

using ::testing::HasSubstr;

// Of Amazon's documentation of signing for S3.
const TimePoint kThen = time_from_iso8601("2013-05-24T00:00:00Z");
const Credentials kExample{.access_key = "AKIAIOSFODNN7EXAMPLE",
                           .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};

std::optional<KnownKey> find_example(const std::string& access_key) {
    if (access_key != kExample.access_key) return std::nullopt;
    return KnownKey{.secret_key = kExample.secret_key};
}

VerifyS3Result verified(const HttpRequest& head, TimePoint now = kThen) {
    return verify_s3(head, now, find_example);
}

HttpRequest published_upload() {
    return {.method = "PUT",
            .target = "/examplebucket/chunkObject.txt",
            .headers = {{"Host", "s3.amazonaws.com"},
                        {"x-amz-date", "20130524T000000Z"},
                        {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                        {"Authorization",
                         "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
                         "aws4_request,SignedHeaders=content-encoding;content-length;host;"
                         "x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"
                         "x-amz-storage-class,Signature="
                         "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"},
                        {"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
                        {"Content-Encoding", "aws-chunked"},
                        {"x-amz-decoded-content-length", "66560"},
                        {"Content-Length", "66824"}}};
}

std::string published_chunks() {
    return "10000;chunk-signature="
           "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" +
           std::string(65536, 'a') +
           "\r\n400;chunk-signature="
           "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
           std::string(1024, 'a') +
           "\r\n0;chunk-signature="
           "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n";
}

HttpRequest published_upload_with_trailer() {
    return {
        .method = "PUT",
        .target = "/examplebucket/chunkObject.txt",
        .headers = {{"Host", "s3.amazonaws.com"},
                    {"x-amz-date", "20130524T000000Z"},
                    {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                    {"Authorization",
                     "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
                     "aws4_request,SignedHeaders=content-encoding;host;x-amz-content-sha256;"
                     "x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer,"
                     "Signature=106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"},
                    {"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"},
                    {"Content-Encoding", "aws-chunked"},
                    {"x-amz-decoded-content-length", "66560"},
                    {"x-amz-trailer", "x-amz-checksum-crc32c"}}};
}

std::string published_chunks_with_trailer() {
    return "10000;chunk-signature="
           "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n" +
           std::string(65536, 'a') +
           "\r\n400;chunk-signature="
           "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n" +
           std::string(1024, 'a') +
           "\r\n0;chunk-signature="
           "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n"
           "x-amz-checksum-crc32c:sOO8/Q==\r\n"
           "x-amz-trailer-signature:"
           "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n";
}

struct Taken {
    std::string bytes = {};
    std::optional<PayloadFault> fault = {};
    Headers trailers = {};
};

Taken take(const PayloadRule& rule, std::string body, std::size_t step = 10000) {
    SignedPayload payload(rule);
    Taken taken;
    for (std::size_t at = 0; at < body.size(); at += step) {
        taken.bytes += text_of(payload.take(
            std::as_writable_bytes(std::span(body).subspan(at, std::min(step, body.size() - at)))));
    }
    taken.fault = payload.finish();
    taken.trailers = payload.trailers();
    return taken;
}

TEST(SigV4S3, the_published_upload_in_chunks_verifies_in_pieces_of_any_length) {
    const VerifyS3Result result = verified(published_upload());
    ASSERT_TRUE(result.caller) << result.detail;
    EXPECT_EQ(result.payload.form, PayloadForm::signed_chunks);
    EXPECT_EQ(result.payload.decoded_bytes, 66560u);
    for (const std::size_t step : {1u, 7u, 86u, 1000u, 65536u, 1000000u}) {
        const Taken taken = take(result.payload, published_chunks(), step);
        EXPECT_EQ(taken.fault, std::nullopt) << step;
        EXPECT_EQ(taken.bytes, std::string(66560, 'a')) << step;
    }
}

TEST(SigV4S3, the_published_upload_with_a_trailer_verifies) {
    const VerifyS3Result result = verified(published_upload_with_trailer());
    ASSERT_TRUE(result.caller) << result.detail;
    const Taken taken = take(result.payload, published_chunks_with_trailer());
    EXPECT_EQ(taken.fault, std::nullopt);
    EXPECT_EQ(taken.bytes, std::string(66560, 'a'));
    EXPECT_EQ(taken.trailers.find("x-amz-checksum-crc32c"), "sOO8/Q==");
}

std::string replaced(std::string text, const std::string& what, const std::string& instead) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), instead);
}

TEST(SigV4S3, a_change_in_any_chunk_or_trailer_is_found) {
    const PayloadRule plain = verified(published_upload()).payload;
    const std::string chunks = published_chunks();
    const std::string a65536 = std::string(65536, 'a');
    const auto fault = [](const PayloadRule& rule, const std::string& body) {
        return take(rule, body).fault;
    };
    EXPECT_EQ(fault(plain, replaced(chunks, a65536, std::string(65535, 'a') + "b")),
              PayloadFault::signature_mismatch);
    EXPECT_EQ(fault(plain, replaced(chunks, "signature=0055", "signature=1055")),
              PayloadFault::signature_mismatch);
    EXPECT_EQ(fault(plain, replaced(chunks, "signature=b6c6", "signature=c6c6")),
              PayloadFault::signature_mismatch);
    EXPECT_EQ(fault(plain, replaced(chunks, ";chunk-signature=0055", ";other=0055")),
              PayloadFault::malformed);
    EXPECT_EQ(fault(plain, replaced(chunks, "0;chunk-signature=b6c6", "0;chunk-signature=")),
              PayloadFault::signature_mismatch);
    EXPECT_EQ(fault(plain, chunks.substr(0, chunks.size() - 2)), PayloadFault::wrong_length);
    EXPECT_EQ(fault(plain, chunks.substr(0, 40000)), PayloadFault::wrong_length);
    EXPECT_EQ(fault(plain, ""), PayloadFault::wrong_length);
    EXPECT_EQ(fault(plain, chunks + "x"), PayloadFault::malformed);
    EXPECT_EQ(fault(plain, replaced(chunks, "\r\n\r\n", "\r\nx-amz-meta-a:1\r\n\r\n")),
              PayloadFault::malformed);
    // A chunk that is left out breaks the chain.
    const std::size_t second = chunks.find("400;");
    EXPECT_EQ(
        fault(plain, chunks.substr(0, second) + chunks.substr(chunks.find("0;chunk", second + 4))),
        PayloadFault::signature_mismatch);

    const PayloadRule with_trailer = verified(published_upload_with_trailer()).payload;
    const std::string trailed = published_chunks_with_trailer();
    EXPECT_EQ(fault(with_trailer, replaced(trailed, "sOO8/Q==", "tOO8/Q==")),
              PayloadFault::signature_mismatch);
    EXPECT_EQ(fault(with_trailer, replaced(trailed, "-signature:d8", "-signature:e8")),
              PayloadFault::signature_mismatch);
    EXPECT_EQ(fault(with_trailer, replaced(trailed, "x-amz-checksum-crc32c:sOO8/Q==\r\n", "")),
              PayloadFault::malformed);
    EXPECT_EQ(
        fault(with_trailer, trailed.substr(0, trailed.find("x-amz-trailer-signature")) + "\r\n"),
        PayloadFault::signature_mismatch);
}

TEST(SigV4S3, the_decoded_length_must_be_the_one_told) {
    PayloadRule rule = verified(published_upload()).payload;
    rule.decoded_bytes = 66559;
    EXPECT_EQ(take(rule, published_chunks()).fault, PayloadFault::wrong_length);
    rule.decoded_bytes = 66561;
    EXPECT_EQ(take(rule, published_chunks()).fault, PayloadFault::wrong_length);
}

TEST(SigV4S3, chunks_may_be_unsigned_with_a_checksum_behind) {
    const PayloadRule rule{
        .form = PayloadForm::chunks, .decoded_bytes = 3, .trailers = {"x-amz-checksum-crc32"}};
    const Taken taken = take(rule, "3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n", 4);
    EXPECT_EQ(taken.fault, std::nullopt);
    EXPECT_EQ(taken.bytes, "abc");
    EXPECT_EQ(taken.trailers.find("x-amz-checksum-crc32"), "NSRBwg==");
    EXPECT_EQ(take(rule, "3\r\nabc\r\n0\r\n\r\n").fault, PayloadFault::malformed);
    EXPECT_EQ(take(rule, "2\r\nab\r\n0\r\nx-amz-checksum-crc32:x\r\n\r\n").fault,
              PayloadFault::wrong_length);
    EXPECT_EQ(take(rule, "abc").fault, PayloadFault::wrong_length);
    EXPECT_EQ(take(rule, "zz\r\n").fault, PayloadFault::malformed);
}

TEST(SigV4S3, a_body_with_its_hash_in_the_head_is_checked_at_its_end) {
    HttpRequest request{
        .method = "PUT", .target = "/b/k", .headers = {{"Host", "h"}}, .body = "abcdef"};
    sign(request, kExample, {.region = "r", .service = "s3"}, kThen);
    request.body.clear();
    const VerifyS3Result result = verified(request);
    ASSERT_TRUE(result.caller) << result.detail;
    EXPECT_EQ(result.payload.form, PayloadForm::hashed);
    EXPECT_EQ(take(result.payload, "abcdef", 4).fault, std::nullopt);
    EXPECT_EQ(take(result.payload, "abcdef", 4).bytes, "abcdef");
    EXPECT_EQ(take(result.payload, "abcdeg", 4).fault, PayloadFault::hash_mismatch);
    EXPECT_EQ(take(result.payload, "abcde", 4).fault, PayloadFault::hash_mismatch);
    EXPECT_EQ(take(result.payload, "").fault, PayloadFault::hash_mismatch);
}

TEST(SigV4S3, what_is_said_of_the_body_must_be_known_signed_and_for_s3) {
    const auto signed_with = [](const std::string& promise, const std::string& service) {
        HttpRequest request{.method = "PUT",
                            .target = "/b/k",
                            .headers = {{"Host", "h"}, {"X-Amz-Content-Sha256", promise}}};
        sign(request, kExample, {.region = "r", .service = service}, kThen);
        return request;
    };
    EXPECT_EQ(verified(signed_with("UNSIGNED-PAYLOAD", "s3")).payload.form,
              PayloadForm::not_signed);
    EXPECT_TRUE(verified(signed_with("UNSIGNED-PAYLOAD", "s3")).caller);
    EXPECT_EQ(verified(signed_with("UNSIGNED-PAYLOAD", "sagemaker")).fault,
              SignatureFault::malformed);
    for (const char* other : {"", "unsigned-payload", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
                              "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"}) {
        HttpRequest request = signed_with("UNSIGNED-PAYLOAD", "s3");
        request.headers.set("X-Amz-Content-Sha256", other);
        EXPECT_EQ(verified(request).fault, SignatureFault::malformed) << other;
    }
    HttpRequest swapped = signed_with("UNSIGNED-PAYLOAD", "s3");
    swapped.headers.set("X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
    EXPECT_EQ(verified(swapped).fault, SignatureFault::mismatch);
    HttpRequest missing = signed_with("UNSIGNED-PAYLOAD", "s3");
    missing.headers.remove("X-Amz-Content-Sha256");
    EXPECT_EQ(verified(missing).fault, SignatureFault::malformed);  // It was signed.
    missing.headers.set("Authorization", replaced(missing.headers.find("authorization").value(),
                                                  "x-amz-content-sha256;", ""));
    EXPECT_EQ(verified(missing).fault, SignatureFault::no_payload);
    EXPECT_EQ(verified({.method = "GET", .target = "/", .headers = {{"Host", "h"}}}).fault,
              SignatureFault::missing);
}

// Of Amazon's documentation of presigned URLs.
HttpRequest published_url() {
    return {.method = "GET",
            .target =
                "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="
                "AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date="
                "20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&"
                "X-Amz-Signature="
                "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
            .headers = {{"Host", "examplebucket.s3.amazonaws.com"}}};
}

TEST(SigV4S3, the_published_url_verifies_until_its_time_is_over) {
    const VerifyS3Result result = verified(published_url());
    ASSERT_TRUE(result.caller) << result.detail;
    EXPECT_TRUE(result.is_presigned);
    EXPECT_EQ(result.payload.form, PayloadForm::not_signed);
    const Duration day = std::chrono::hours(24);
    EXPECT_TRUE(verified(published_url(), kThen + day - Duration(1)).caller);
    EXPECT_EQ(verified(published_url(), kThen + day).fault, SignatureFault::expired);
    EXPECT_TRUE(verified(published_url(), kThen - kClockSkewMax).caller);
    EXPECT_EQ(verified(published_url(), kThen - kClockSkewMax - Duration(1)).fault,
              SignatureFault::skewed);
}

TEST(SigV4S3, a_url_changed_on_the_way_is_refused) {
    const auto fault = [](const std::function<void(HttpRequest&)>& change) {
        HttpRequest request = published_url();
        change(request);
        const VerifyS3Result result = verified(request);
        EXPECT_FALSE(result.caller);
        EXPECT_TRUE(result.is_presigned);
        return result.fault;
    };
    const auto swap = [&](const std::string& what, const std::string& instead) {
        return fault([&](HttpRequest& r) { r.target = replaced(r.target, what, instead); });
    };
    EXPECT_EQ(swap("/test.txt", "/best.txt"), SignatureFault::mismatch);
    EXPECT_EQ(swap("Expires=86400", "Expires=86401"), SignatureFault::mismatch);
    EXPECT_EQ(swap("?X-Amz-Alg", "?acl&X-Amz-Alg"), SignatureFault::mismatch);
    EXPECT_EQ(swap("=aeeed9", "=beeed9"), SignatureFault::mismatch);
    EXPECT_EQ(fault([](HttpRequest& r) { r.method = "PUT"; }), SignatureFault::mismatch);
    EXPECT_EQ(fault([](HttpRequest& r) { r.headers.set("Host", "other"); }),
              SignatureFault::mismatch);
    EXPECT_EQ(swap("AKIAIOSFODNN7", "AKIAIOSFODNN8"), SignatureFault::unknown_key);
    EXPECT_EQ(swap("Signature=", "Security-Token=t&X-Amz-Signature="), SignatureFault::unknown_key);
    EXPECT_EQ(swap("Expires=86400", "Expires=604801"), SignatureFault::malformed);
    EXPECT_EQ(swap("Expires=86400", "Expires=0"), SignatureFault::malformed);
    EXPECT_EQ(swap("Expires=86400&", ""), SignatureFault::malformed);
    EXPECT_EQ(swap("Date=20130524T000000Z", "Date=yesterday"), SignatureFault::malformed);
    EXPECT_EQ(swap("Date=20130524T", "Date=20130523T"), SignatureFault::malformed);
    EXPECT_EQ(swap("SignedHeaders=host", "SignedHeaders=date"), SignatureFault::malformed);
    EXPECT_EQ(swap("HMAC-SHA256", "HMAC-SHA1"), SignatureFault::malformed);
    EXPECT_EQ(swap("us-east-1%2Fs3", "us-east-1%2Fsts"), SignatureFault::malformed);
    EXPECT_EQ(swap("/test.txt?", "/test.txt?X-Amz-Expires=1&"), SignatureFault::malformed);
    EXPECT_EQ(swap("/test.txt?", "/test.txt?x=%zz&"), SignatureFault::malformed);
    // What was not signed may not be added.
    EXPECT_EQ(fault([](HttpRequest& r) { r.headers.add("x-amz-copy-source", "/b/secret"); }),
              SignatureFault::malformed);
    EXPECT_EQ(fault([](HttpRequest& r) { r.headers.add("Authorization", "AWS4-HMAC-SHA256 x"); }),
              SignatureFault::malformed);
}

// What botocore 1.44 made for the endpoint http://127.0.0.1:7717.
TEST(SigV4S3, urls_of_boto3_verify_in_version_4_and_by_default_in_version_2) {
    const TimePoint now = time_from_iso8601("2026-12-01T12:53:00Z");
    const auto result = [&](const std::string& target, Headers headers = {},
                            const std::string& method = "GET", const std::string& token = "") {
        headers.add("Host", "127.0.0.1:7717");
        return verify_s3({.method = method, .target = target, .headers = std::move(headers)}, now,
                         [&](const std::string& access_key) -> std::optional<KnownKey> {
                             if (access_key != "AKIDCALLER") return std::nullopt;
                             return KnownKey{.secret_key = "a secret", .session_token = token};
                         });
    };
    const std::string v4 =
        "/b/k%20a/%2Bb?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDCALLER%2F20261201%2F"
        "us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261201T125257Z&X-Amz-Expires=600&"
        "X-Amz-SignedHeaders=host&X-Amz-Signature="
        "31822198b1488a9c1c08f986daa5096a88827cc8feaec967b7bc8e17687caa34";
    EXPECT_TRUE(result(v4).caller) << result(v4).detail;
    const std::string v2 =
        "/b/k%20a/%2Bb?AWSAccessKeyId=AKIDCALLER&Signature=1vbrnveDQYq453aYzCyLGQKo1hk%3D&Expires="
        "1796130177";
    EXPECT_TRUE(result(v2).caller) << result(v2).detail;
    EXPECT_TRUE(result(v2).is_presigned);
    EXPECT_EQ(result(v2, {}, "PUT").fault, SignatureFault::mismatch);
    EXPECT_EQ(result(replaced(v2, "k%20a", "k%20b")).fault, SignatureFault::mismatch);
    EXPECT_EQ(result(v2 + "&acl").fault, SignatureFault::mismatch);
    EXPECT_EQ(result(v2 + "&list-type=2").fault, SignatureFault::malformed);
    EXPECT_EQ(result(v2, {{"x-amz-copy-source", "/b/s"}}).fault, SignatureFault::mismatch);
    EXPECT_EQ(result(replaced(v2, "1796130177", "1796129570")).fault, SignatureFault::expired);
    EXPECT_EQ(result(replaced(v2, "1796130177", "1996129570")).fault, SignatureFault::malformed);
    const std::string upload =
        "/b/k?AWSAccessKeyId=AKIDCALLER&Signature=UDZCUc9%2BhMTsxygBiWffN%2B52nms%3D&content-type="
        "text%2Fplain&x-amz-meta-a=b%20c&x-amz-security-token=tok%2F%2B%3D&Expires=1796130177";
    const Headers sent = {{"Content-Type", "text/plain"}, {"x-amz-meta-a", "b c"}};
    EXPECT_TRUE(result(upload, sent, "PUT", "tok/+=").caller);
    EXPECT_EQ(result(upload, sent, "PUT", "other").fault, SignatureFault::unknown_key);
    EXPECT_EQ(result(upload, {{"x-amz-meta-a", "z"}}, "PUT", "tok/+=").fault,
              SignatureFault::mismatch);
}

}  // namespace
}  // namespace gruca::net
