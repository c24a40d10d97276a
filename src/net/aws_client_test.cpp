#include "net/aws_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/boundary.h"
#include "net/http_server.h"

namespace gruca::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A server that answers as told, and checks that every request is signed with the caller's key.
class AwsClientTest : public testing::Test {
  protected:
    void serve(std::function<HttpResponse(const HttpRequest&)> answer) {
        server.emplace(HttpServerOptions{}, [this, answer](HttpRequest request, HttpReply reply) {
            ++requests;
            const VerifyResult result =
                verify(request, clock.now(), [](const std::string&) -> std::optional<KnownKey> {
                    return KnownKey{.secret_key = "secret"};
                });
            EXPECT_TRUE(result.caller) << result.detail;
            if (result.caller) service = result.caller->scope.service;
            reply.send(answer(request));
        });
    }

    AwsClient client(std::chrono::milliseconds retry_for = std::chrono::milliseconds(0)) const {
        return AwsClient({.origin = "http://127.0.0.1:" + std::to_string(server->port()),
                          .region = "us-west-2",
                          .credentials = {.access_key = "AKID", .secret_key = "secret"},
                          .retry_for = retry_for},
                         clock);
    }

    Error failure(const HttpResponse& answer) {
        serve([&](const HttpRequest&) { return answer; });
        const auto error = run_guarded([&] { client().call("SageMaker.X", Json::object()); });
        EXPECT_TRUE(error.has_value());
        return error.value_or(Error(ErrorCode::internal, "nothing was thrown"));
    }

    const SystemClock clock;
    std::atomic<int> requests = 0;
    std::string service;
    std::optional<HttpServer> server;
};

TEST_F(AwsClientTest, a_call_is_a_signed_post_of_json_and_returns_json) {
    serve([](const HttpRequest& request) {
        EXPECT_EQ(request.headers.find("X-Amz-Target"), "SageMaker.DescribeTrainingJob");
        EXPECT_EQ(request.headers.find("Content-Type"), "application/x-amz-json-1.1");
        return HttpResponse{.body = request.body};
    });
    const Json request = Json::object({{"TrainingJobName", "j"}});
    EXPECT_EQ(client().call("SageMaker.DescribeTrainingJob", request), request);
    EXPECT_EQ(service, "sagemaker");
}

TEST_F(AwsClientTest, the_target_chooses_the_signing_name) {
    serve([](const HttpRequest&) { return HttpResponse{}; });
    EXPECT_EQ(client().call("Logs_20140328.GetLogEvents", Json()), Json::object());
    EXPECT_EQ(service, "logs");
    client().call_raw("Gruca.AppendLog", "bytes", {{"X-Gruca-Offset", "7"}});
    EXPECT_EQ(service, "gruca");
    EXPECT_EQ(client().call_form("sts", "Action=GetCallerIdentity"), "");
    EXPECT_EQ(service, "sts");
}

TEST_F(AwsClientTest, an_aws_error_has_the_code_that_fits_its_name) {
    const std::vector<std::pair<std::string, ErrorCode>> expected = {
        {"ValidationException", ErrorCode::invalid_argument},
        {"com.amazonaws#ResourceInUse:http://x", ErrorCode::already_exists},
        {"ResourceNotFound", ErrorCode::not_found},
        {"InvalidSignatureException", ErrorCode::permission_denied},
        {"ThrottlingException", ErrorCode::unavailable},
        {"NobodyKnowsThis", ErrorCode::invalid_argument},
    };
    for (const auto& [type, code] : expected) {
        const Error error =
            failure({.status = 400, .body = R"({"__type":")" + type + R"(","message":"why"})"});
        EXPECT_EQ(error.code(), code) << type;
        EXPECT_THAT(error.message(), HasSubstr(": why"));
    }
    EXPECT_THAT(
        failure({.status = 400, .body = R"({"__type":"x#ResourceInUse","Message":"m"})"}).message(),
        StartsWith("ResourceInUse: m"));
}

TEST_F(AwsClientTest, errors_in_other_shapes_are_read_too) {
    const Error xml = failure({.status = 403,
                               .body = "<ErrorResponse><Error><Code>InvalidClientTokenId</Code>"
                                       "<Message>no</Message></Error></ErrorResponse>"});
    EXPECT_EQ(xml.code(), ErrorCode::permission_denied);
    EXPECT_EQ(xml.message(), "InvalidClientTokenId: no");
    const Error text = failure({.status = 502, .body = "a proxy is unhappy\n"});
    EXPECT_EQ(text.code(), ErrorCode::unavailable);
    EXPECT_THAT(text.message(), HasSubstr("502: a proxy is unhappy"));
}

TEST_F(AwsClientTest, a_failure_of_the_service_names_its_request) {
    EXPECT_THAT(failure({.status = 500,
                         .headers = {{"x-amzn-RequestId", "id-7"}},
                         .body = R"({"__type":"InternalFailure","message":"m"})"})
                    .message(),
                HasSubstr("id-7"));
}

TEST_F(AwsClientTest, what_may_pass_is_tried_again_and_what_cannot_is_not) {
    serve([this](const HttpRequest&) {
        if (requests == 1) return HttpResponse{.status = 503};
        if (requests == 2) {
            return HttpResponse{.status = 400, .body = R"({"__type":"ThrottlingException"})"};
        }
        return HttpResponse{.body = R"({"a":1})"};
    });
    EXPECT_EQ(client(std::chrono::minutes(1)).call("SageMaker.X", Json()).get_int("a"), 1);
    EXPECT_EQ(requests, 3);
    serve([](const HttpRequest&) {
        return HttpResponse{.status = 400, .body = R"({"__type":"ValidationException"})"};
    });
    requests = 0;
    EXPECT_THROW(client(std::chrono::minutes(1)).call("SageMaker.X", Json()), Error);
    EXPECT_EQ(requests, 1);
}

TEST_F(AwsClientTest, without_time_to_retry_there_is_one_attempt) {
    serve([](const HttpRequest&) { return HttpResponse{.status = 503}; });
    EXPECT_THROW(client().call("SageMaker.X", Json()), Error);
    EXPECT_EQ(requests, 1);
}

TEST_F(AwsClientTest, waiting_to_retry_ends_when_cancelled) {
    serve([](const HttpRequest&) { return HttpResponse{.status = 503}; });
    const auto error = run_guarded([&] {
        client(std::chrono::hours(1)).call("SageMaker.X", Json(), {}, [&] { return requests > 2; });
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gruca::net
