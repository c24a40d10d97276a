#include "net/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "net/sigv4_canonical.h"

namespace gruca::net {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;

const TimePoint kNow = time_from_iso8601("2026-12-01T09:30:00Z");
const Credentials kCaller{.access_key = "AKIDCALLER", .secret_key = "a secret"};
const SigningScope kScope{.region = "us-west-2", .service = "sagemaker"};

HttpRequest a_request() {
    return {.method = "POST",
            .target = "/",
            .headers = {{"Host", "127.0.0.1:7717"},
                        {"Content-Type", "application/x-amz-json-1.1"},
                        {"X-Amz-Target", "SageMaker.ListTrainingJobs"}},
            .body = "{}"};
}

HttpRequest a_signed_request(const Credentials& credentials = kCaller) {
    HttpRequest request = a_request();
    sign(request, credentials, kScope, kNow);
    return request;
}

std::optional<KnownKey> find_caller(const std::string& access_key) {
    if (access_key != kCaller.access_key) return std::nullopt;
    return KnownKey{.secret_key = kCaller.secret_key};
}

SignatureFault fault_of(const HttpRequest& request, TimePoint now = kNow) {
    const VerifyResult result = verify(request, now, find_caller);
    EXPECT_FALSE(result.caller.has_value());
    EXPECT_EQ(result.detail.find(kCaller.secret_key), std::string::npos);
    return result.fault;
}

TEST(SigV4, what_is_signed_verifies_and_says_who_and_for_what) {
    const VerifyResult result = verify(a_signed_request(), kNow, find_caller);
    ASSERT_TRUE(result.caller) << result.detail;
    EXPECT_EQ(result.caller->access_key, "AKIDCALLER");
    EXPECT_EQ(result.caller->scope.region, "us-west-2");
    EXPECT_EQ(result.caller->scope.service, "sagemaker");
}

TEST(SigV4, signing_again_replaces_the_first_signature) {
    HttpRequest request = a_signed_request();
    request.body = "{\"MaxResults\":1}";
    sign(request, kCaller, kScope, kNow + std::chrono::minutes(20));
    EXPECT_TRUE(verify(request, kNow + std::chrono::minutes(20), find_caller).caller);
}

TEST(SigV4, anything_changed_on_the_way_is_a_mismatch) {
    const std::vector<std::function<void(HttpRequest&)>> changes = {
        [](HttpRequest& r) { r.body += " "; },
        [](HttpRequest& r) { r.method = "PUT"; },
        [](HttpRequest& r) { r.target = "/x"; },
        [](HttpRequest& r) { r.target = "/?a=b"; },
        [](HttpRequest& r) { r.headers.set("Host", "127.0.0.1:7718"); },
        [](HttpRequest& r) { r.headers.set("X-Amz-Target", "SageMaker.StopTrainingJob"); },
        [](HttpRequest& r) { r.headers.add("X-Amz-Target", "SageMaker.StopTrainingJob"); },
        [](HttpRequest& r) { r.headers.set("X-Amz-Date", "20261201T093001Z"); },
        [](HttpRequest& r) { r.headers.set("Content-Type", "text/plain"); },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        HttpRequest request = a_signed_request();
        changes[i](request);
        EXPECT_EQ(fault_of(request), SignatureFault::mismatch) << "change " << i;
    }
}

TEST(SigV4, the_wrong_secret_is_a_mismatch_and_the_wrong_key_unknown) {
    EXPECT_EQ(fault_of(a_signed_request({.access_key = "AKIDCALLER", .secret_key = "other"})),
              SignatureFault::mismatch);
    EXPECT_EQ(fault_of(a_signed_request({.access_key = "AKIDOTHER", .secret_key = "a secret"})),
              SignatureFault::unknown_key);
}

TEST(SigV4, a_clock_may_be_wrong_by_fifteen_minutes_either_way) {
    for (const Duration skew : {Duration(kClockSkewMax), Duration(-kClockSkewMax)}) {
        EXPECT_TRUE(verify(a_signed_request(), kNow + skew, find_caller).caller);
    }
    EXPECT_EQ(fault_of(a_signed_request(), kNow + kClockSkewMax + Duration(1)),
              SignatureFault::skewed);
    EXPECT_EQ(fault_of(a_signed_request(), kNow - kClockSkewMax - Duration(1)),
              SignatureFault::skewed);
}

TEST(SigV4, an_unsigned_request_is_missing_its_signature) {
    EXPECT_EQ(fault_of(a_request()), SignatureFault::missing);
}

TEST(SigV4, malformed_signatures_are_refused) {
    const std::string good = *a_signed_request().headers.find("Authorization");
    const auto with = [&](const std::string& what, const std::string& instead) {
        std::string changed = good;
        changed.replace(changed.find(what), what.size(), instead);
        HttpRequest request = a_signed_request();
        request.headers.set("Authorization", changed);
        return request;
    };
    EXPECT_EQ(fault_of(with("AWS4-HMAC-SHA256", "Bearer")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with("/aws4_request", "")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with("Credential=", "Credential")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with(", Signature=", ", Signature=0")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with("content-type;host", "content-type")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with("content-type;host", "content-type;host;host")),
              SignatureFault::malformed);
    EXPECT_EQ(fault_of(with("content-type;host", "host;content-type")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with(";x-amz-date", ";x-amz-date;x-missing")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with(";x-amz-target", "")), SignatureFault::malformed);
    EXPECT_EQ(fault_of(with("20261201", "20261130")), SignatureFault::malformed);
}

TEST(SigV4, a_header_that_decides_may_occur_only_once) {
    for (const char* name : {"Authorization", "X-Amz-Date", "Host"}) {
        HttpRequest request = a_signed_request();
        request.headers.add(name, *request.headers.find(name));
        EXPECT_EQ(fault_of(request), SignatureFault::malformed) << name;
    }
}

TEST(SigV4, a_missing_or_unreadable_date_is_malformed) {
    for (const char* date : {"", "yesterday", "2026-12-01T09:30:00Z", "20261301T093000Z"}) {
        HttpRequest request = a_signed_request();
        request.headers.set("X-Amz-Date", date);
        EXPECT_EQ(fault_of(request), SignatureFault::malformed) << date;
    }
}

class TemporaryCredentials : public testing::Test {
  protected:
    const Credentials job{
        .access_key = "ASIAJOB", .secret_key = "a secret", .session_token = "token"};

    VerifyResult verified(const Credentials& credentials, TimePoint now = kNow) const {
        return verify(a_signed_request(credentials), now, [&](const std::string&) {
            return KnownKey{.secret_key = "a secret",
                            .session_token = "token",
                            .expires = kNow + std::chrono::minutes(5)};
        });
    }
};

TEST_F(TemporaryCredentials, verify_with_their_token) {
    EXPECT_TRUE(verified(job).caller);
}

TEST_F(TemporaryCredentials, are_unknown_without_it_or_with_another) {
    Credentials bent = job;
    for (const char* token : {"", "tokem", "token2"}) {
        bent.session_token = token;
        EXPECT_EQ(verified(bent).fault, SignatureFault::unknown_key) << token;
        EXPECT_FALSE(verified(bent).caller);
    }
}

TEST_F(TemporaryCredentials, end_when_they_expire) {
    EXPECT_FALSE(verified(job, kNow + std::chrono::minutes(5)).caller);
    EXPECT_EQ(verified(job, kNow + std::chrono::minutes(5)).fault,
              SignatureFault::credentials_ended);
}

TEST(SigV4, a_token_on_a_key_that_has_none_is_unknown) {
    Credentials bent = kCaller;
    bent.session_token = "token";
    EXPECT_EQ(fault_of(a_signed_request(bent)), SignatureFault::unknown_key);
}

TEST(SigV4, s3_signs_the_path_as_it_is_and_the_hash_of_the_body) {
    HttpRequest request{.method = "PUT",
                        .target = "/bucket/a//b/../c%20d%2Fe",
                        .headers = {{"Host", "h"}},
                        .body = "bytes"};
    sign(request, kCaller, {.region = "r", .service = "s3"}, kNow);
    EXPECT_EQ(request.headers.find("X-Amz-Content-Sha256"), sha256_hex("bytes"));
    EXPECT_TRUE(verify(request, kNow, find_caller).caller);
    EXPECT_THAT(canonical_request(request, {"host"}, "hash", path_form_of("s3")),
                HasSubstr("\n/bucket/a//b/../c%20d/e\n"));
    request.body = "other";
    EXPECT_EQ(fault_of(request), SignatureFault::mismatch);
}

TEST(SigV4, no_service_but_s3_takes_bodies_or_urls_that_s3_alone_may_sign) {
    for (const char* service : {"s3", "sagemaker"}) {
        for (const char* promise : {"UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
                                    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}) {
            HttpRequest request = a_request();
            request.headers.set("X-Amz-Content-Sha256", promise);
            sign(request, kCaller, {.region = "r", .service = service}, kNow);
            request.headers.set("X-Amz-Content-Sha256", promise);
            EXPECT_EQ(fault_of(request), SignatureFault::mismatch) << promise;
        }
    }
    HttpRequest presigned = a_request();
    presigned.target =
        "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDCALLER%2F20261201%2Fr%2Fsagemaker"
        "%2Faws4_request&X-Amz-Date=20261201T093000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&"
        "X-Amz-Signature=0";
    EXPECT_EQ(fault_of(presigned), SignatureFault::missing);
}

// Amazon's vectors: one folder a case.
class Vectors : public testing::Test {
  protected:
    void SetUp() override {
        const char* named = std::getenv("GRUCA_SIGV4_VECTORS");
        folder = named != nullptr ? fs::path(named)
                                  : fs::path(GRUCA_SOURCE_DIR) / "../shared/data/sigv4";
        if (!fs::is_directory(folder)) {
            GTEST_SKIP() << "Amazon's test vectors are not at " << folder
                         << "; set GRUCA_SIGV4_VECTORS to their folder";
        }
    }

    static HttpRequest parse(const std::string& text) {
        HttpRequest request;
        const std::size_t head_end = std::min(text.find("\n\n"), text.size());
        if (head_end + 2 < text.size()) request.body = text.substr(head_end + 2);
        for (const std::string& line : split(text.substr(0, head_end), '\n')) {
            if (request.method.empty()) {
                const std::size_t blank = line.find(' ');
                request.method = line.substr(0, blank);
                request.target = line.substr(blank + 1, line.rfind(' ') - blank - 1);
            } else if (line.starts_with(' ')) {  // A value that goes on.
                auto [name, value] = request.headers.fields().back();
                const auto before = request.headers.fields();
                request.headers = {};
                for (std::size_t i = 0; i + 1 < before.size(); ++i) {
                    request.headers.add(before[i].first, before[i].second);
                }
                request.headers.add(name, value + "\n" + line);
            } else if (!line.empty()) {
                const std::size_t colon = line.find(':');
                request.headers.add(line.substr(0, colon), line.substr(colon + 1));
            }
        }
        return request;
    }

    static std::vector<std::string> signed_headers(const std::string& canonical) {
        const std::vector<std::string> lines = split(canonical, '\n');
        return split(lines.at(lines.size() - 2), ';');
    }

    static void check(const fs::path& vector, const std::string& form) {
        SCOPED_TRACE(vector.filename().string() + ", " + form);
        const auto file = [&](const std::string& name) { return read_file(vector / name); };
        const Json context = Json::parse(file("context.json"));
        const SigningScope scope{.region = context.at("region").as_string(),
                                 .service = context.at("service").as_string()};
        const std::string date =
            iso8601_basic(time_from_iso8601(context.at("timestamp").as_string()));
        const std::string canonical = file(form + "-canonical-request.txt");
        HttpRequest request = parse(file(form + "-signed-request.txt"));
        // The signature itself is not part of what is signed.
        const std::size_t mark = request.target.find("&X-Amz-Signature=");
        const std::size_t end = std::min(request.target.find('&', mark + 1), request.target.size());
        if (mark != std::string::npos) request.target.erase(mark, end - mark);
        const std::string token = context.at("credentials").get_string("token");
        if (context.get_bool("omit_session_token") && form == "query") {
            const std::size_t at = request.target.find("&X-Amz-Security-Token=");
            ASSERT_NE(at, std::string::npos);
            request.target.erase(at, request.target.find('&', at + 1) - at);
        }
        EXPECT_EQ(canonical_request(
                      request, signed_headers(canonical), sha256_hex(request.body),
                      {.normalised = context.at("normalize").as_bool(), .encoded_again = true}),
                  canonical);
        EXPECT_EQ(string_to_sign(date, scope, canonical), file(form + "-string-to-sign.txt"));
        EXPECT_EQ(signature_of(context.at("credentials").at("secret_access_key").as_string(), date,
                               scope, string_to_sign(date, scope, canonical)),
                  file(form + "-signature.txt"));
        if (form != "header" || !context.at("normalize").as_bool()) return;
        const VerifyResult result =
            verify(request, time_from_iso8601(date), [&](const std::string&) {
                return KnownKey{
                    .secret_key = context.at("credentials").at("secret_access_key").as_string(),
                    .session_token = token};
            });
        EXPECT_TRUE(result.caller) << result.detail;
    }

    fs::path folder;
};

TEST_F(Vectors, all_give_the_published_canonical_request_string_and_signature) {
    int checked = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (!entry.is_directory()) continue;
        check(entry.path(), "header");
        check(entry.path(), "query");
        ++checked;
    }
    EXPECT_GE(checked, 30);
}

}  // namespace
}  // namespace gruca::net
