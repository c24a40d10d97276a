// The API as clients see it: who may call what, what a wrong call is told, lists, tags and logs.

#include <gmock/gmock.h>

#include "base/text.h"
#include "net/url.h"
#include "service/api/log_filter.h"
#include "service/api/page_token.h"
#include "service/service_fixture.h"

namespace gruca::service {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const Json kGroup = Json("/aws/sagemaker/TrainingJobs");

class ApiTest : public ::testing::Test {
  protected:
    // "<AWS code>: <message>", or "ok".
    static std::string outcome(net::AwsClient& client, const std::string& target,
                               const Json& request = Json::object()) {
        try {
            client.call(target, request);
            return "ok";
        } catch (const Error& error) {
            return error.message();
        }
    }
    std::string outcome(const std::string& target, const Json& request = Json::object()) {
        return outcome(*running.admin, target, request);
    }
    net::HttpResponse send_unsigned(const net::HttpRequest& request) const {
        return net::HttpClient().send(running.service->endpoint(), request);
    }
    net::HttpResponse send_signed(net::HttpRequest request, const std::string& service) const {
        request.headers.add("Host", running.service->endpoint().substr(7));
        net::sign(request, running.admin_credentials(), {.region = "us-east-1", .service = service},
                  running.clock.now());
        return net::HttpClient().send(running.service->endpoint(), request);
    }
    std::vector<std::string> names(Json request) {
        std::vector<std::string> found;
        const Json reply = running.admin->call("SageMaker.ListTrainingJobs", std::move(request));
        for (const Json& job : reply.at("TrainingJobSummaries").as_array()) {
            found.push_back(job.at("TrainingJobName").as_string());
        }
        return found;
    }
    spec::NodeConfig training(const std::string& name) {
        running.create(name);
        const spec::NodeConfig node = running.nodes.launched(name + "-algo-1");
        running.report(node, spec::NodePhase::training);
        return node;
    }

    testing::RunningService running;
};

TEST_F(ApiTest, each_kind_of_key_may_call_its_own_operations_only) {
    const spec::NodeConfig node = training("job");
    const auto order = running.poll(node, 0);
    const auto node_client = running.client_of(node);
    const auto job_client = running.client({.access_key = order.task->job_access_key,
                                            .secret_key = order.task->job_secret_key,
                                            .session_token = order.task->job_session_token});
    const Json own = Json::object({{"TrainingJobName", "job"}});
    const Json other = Json::object({{"TrainingJobName", "other"}});
    const auto denied = StartsWith("AccessDeniedException");
    EXPECT_THAT(outcome(*node_client, "SageMaker.DescribeTrainingJob", own), denied);
    EXPECT_THAT(outcome(*node_client, "Gruca.PollOrder",
                        Json::object({{"node", "other-algo-1-000000"}, {"seen_version", 0}})),
                denied);
    EXPECT_THAT(outcome("Gruca.ReportNode", Json::object({{"node_id", node.node_id}})), denied);
    EXPECT_EQ(outcome(*job_client, "SageMaker.DescribeTrainingJob", own), "ok");
    EXPECT_THAT(outcome(*job_client, "SageMaker.DescribeTrainingJob", other), denied);
    EXPECT_THAT(outcome(*job_client, "SageMaker.StopTrainingJob", own), denied);
    EXPECT_THAT(outcome(*job_client, "SageMaker.ListTrainingJobs"), denied);
    EXPECT_EQ(outcome("Gruca.PollOrder"),
              "AccessDeniedException: User: admin/admin is not authorized to perform: "
              "gruca:PollOrder");
    EXPECT_THAT(job_client->call_form("sts", "Action=GetCallerIdentity&Version=2011-06-15"),
                HasSubstr("assumed-role/gruca-job/job"));
}

TEST_F(ApiTest, nobody_without_a_key_learns_anything) {
    const net::HttpRequest json{.method = "POST",
                                .target = "/",
                                .headers = {{"X-Amz-Target", "SageMaker.ListTrainingJobs"},
                                            {"Content-Type", "application/x-amz-json-1.1"}},
                                .body = "{}"};
    const net::HttpResponse reply = send_unsigned(json);
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("MissingAuthenticationTokenException"));
    EXPECT_TRUE(reply.headers.find("x-amzn-RequestId"));
    EXPECT_EQ(send_unsigned({.method = "GET", .target = "/"}).status, 403);
    const net::HttpResponse refused = send_unsigned({.method = "DELETE", .target = "/bucket/key"});
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(refused.headers.find("Connection"), "close");  // Nor do they keep a place.

    net::Credentials wrong = running.admin_credentials();
    wrong.secret_key[0] = wrong.secret_key[0] == 'x' ? 'y' : 'x';
    EXPECT_THAT(outcome(*running.client(wrong), "SageMaker.ListTrainingJobs"),
                StartsWith("InvalidSignatureException"));
    wrong.access_key = "AKIAUNKNOWN";
    EXPECT_THAT(outcome(*running.client(wrong), "SageMaker.ListTrainingJobs"),
                StartsWith("UnrecognizedClientException"));
}

TEST_F(ApiTest, a_skewed_clock_and_a_wrong_service_are_refused) {
    const auto client = running.client(running.admin_credentials());
    net::HttpRequest request{.method = "POST",
                             .target = "/",
                             .headers = {{"X-Amz-Target", "SageMaker.ListTrainingJobs"},
                                         {"Content-Type", "application/x-amz-json-1.1"}},
                             .body = "{}"};
    EXPECT_EQ(send_signed(request, "sagemaker").status, 200);
    const net::HttpResponse wrong = send_signed(request, "s3");
    EXPECT_EQ(wrong.status, 400);
    EXPECT_THAT(wrong.body, HasSubstr("InvalidSignatureException"));
    request.headers.add("Host", running.service->endpoint().substr(7));
    net::sign(request, running.admin_credentials(), {.region = "r", .service = "sagemaker"},
              running.clock.now() - std::chrono::minutes(20));
    EXPECT_THAT(send_unsigned(request).body, HasSubstr("InvalidSignatureException"));
}

TEST_F(ApiTest, what_is_not_there_is_an_aws_error_and_never_a_500) {
    EXPECT_THAT(outcome("SageMaker.CreateModel"), StartsWith("UnknownOperationException"));
    EXPECT_THAT(outcome("Nonsense"), StartsWith("UnknownOperationException"));
    const net::HttpResponse query = send_signed(
        {.method = "POST",
         .target = "/",
         .headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}},
         .body = "Action=ListRoles&Version=2010-05-08"},
        "iam");
    EXPECT_EQ(query.status, 400);
    EXPECT_THAT(query.body, HasSubstr("<Code>InvalidAction</Code>"));
    EXPECT_EQ(send_signed({.method = "GET", .target = "/bucket/key"}, "s3").status, 404);
    const net::HttpResponse path = send_signed(
        {.method = "GET", .target = "/x", .headers = {{"X-Amz-Target", "SageMaker.ListTags"}}},
        "sagemaker");
    EXPECT_EQ(path.status, 400);
}

TEST_F(ApiTest, malformed_requests_are_told_what_is_wrong) {
    for (const char* body : {"{", "[]", "7", "{\"a\":1} x"}) {
        const net::HttpResponse reply =
            send_signed({.method = "POST",
                         .target = "/",
                         .headers = {{"X-Amz-Target", "SageMaker.ListTrainingJobs"},
                                     {"Content-Type", "application/x-amz-json-1.1"}},
                         .body = body},
                        "sagemaker");
        EXPECT_EQ(reply.status, 400) << body;
        EXPECT_THAT(reply.body, HasSubstr("SerializationException")) << body;
        EXPECT_THAT(reply.body, Not(HasSubstr("parse error"))) << body;
    }
    EXPECT_THAT(outcome("SageMaker.DescribeTrainingJob"),
                StartsWith("ValidationException: 1 validation error detected: Value null at "
                           "'trainingJobName'"));
    EXPECT_THAT(outcome("SageMaker.ListTrainingJobs",
                        Json::object({{"MaxResults", 101}, {"SortBy", "Size"}})),
                AllOf(HasSubstr("2 validation errors detected"), HasSubstr("'maxResults'"),
                      HasSubstr("[Name, CreationTime, Status]")));
    EXPECT_THAT(outcome("SageMaker.CreateTrainingJob", Json::object({{"TrainingJobName", 5}})),
                StartsWith("ValidationException"));
}

TEST_F(ApiTest, an_answer_that_quotes_the_request_is_utf8_all_the_same) {
    const net::HttpResponse reply =
        send_signed({.method = "POST",
                     .target = "/",
                     .headers = {{"X-Amz-Target", "SageMaker.\xff\xfe"}},
                     .body = "{}"},
                    "sagemaker");
    EXPECT_EQ(reply.status, 400);
    EXPECT_NO_THROW(Json::parse(reply.body)) << reply.body;
}

TEST_F(ApiTest, a_body_of_very_many_values_is_refused_before_it_costs_memory) {
    std::string body = "{\"a\":[0";
    for (int i = 0; i < 300'000; ++i) body += ",0";
    const net::HttpResponse reply =
        send_signed({.method = "POST",
                     .target = "/",
                     .headers = {{"X-Amz-Target", "SageMaker.ListTrainingJobs"}},
                     .body = body + "]}"},
                    "sagemaker");
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("more than 200000 values"));
}

TEST_F(ApiTest, names_are_used_once_and_unknown_ones_are_refused_as_sdks_expect) {
    running.create("job");
    EXPECT_THAT(outcome("SageMaker.CreateTrainingJob", testing::RunningService::request("job")),
                StartsWith("ResourceInUse"));
    const Json nobody = Json::object({{"TrainingJobName", "nobody"}});
    EXPECT_EQ(outcome("SageMaker.DescribeTrainingJob", nobody),
              "ValidationException: Requested resource not found.");
    EXPECT_THAT(outcome("SageMaker.StopTrainingJob", nobody), StartsWith("ResourceNotFound"));
}

TEST_F(ApiTest, the_nodes_of_a_job_are_described_as_far_as_they_are_heard_of) {
    const Json of_job = Json::object({{"TrainingJobName", "job"}});
    EXPECT_THAT(outcome("Gruca.DescribeNodes", of_job), StartsWith("ResourceNotFound"));
    EXPECT_THAT(outcome("Gruca.DescribeNodes"), StartsWith("ValidationException"));
    training("job");
    const Json answer = running.admin->call("Gruca.DescribeNodes", of_job);
    ASSERT_EQ(answer.at("Nodes").as_array().size(), 1u);
    const Json& node = answer.at("Nodes").as_array().front();
    EXPECT_EQ(node.get_string("Host"), "algo-1");
    EXPECT_EQ(node.get_string("Phase"), "training");
    EXPECT_FALSE(node.at("Ended").as_bool());
}

TEST_F(ApiTest, a_list_is_paged_sorted_and_filtered) {
    for (int i = 0; i < 7; ++i) {
        running.create("job-" + std::to_string(i));
        running.clock.advance(std::chrono::seconds(1));
    }
    std::vector<std::string> all;
    Json request = Json::object({{"MaxResults", 3}, {"SortOrder", "Descending"}});
    while (true) {
        const Json page = running.admin->call("SageMaker.ListTrainingJobs", request);
        for (const Json& job : page.at("TrainingJobSummaries").as_array()) {
            all.push_back(job.at("TrainingJobName").as_string());
        }
        if (!page.find("NextToken")) break;
        request.set("NextToken", page.at("NextToken"));
    }
    EXPECT_THAT(all, ElementsAre("job-6", "job-5", "job-4", "job-3", "job-2", "job-1", "job-0"));
    request.set("SortOrder", "Ascending");
    EXPECT_THAT(outcome("SageMaker.ListTrainingJobs", request), StartsWith("ValidationException"));
    EXPECT_THAT(names(Json::object({{"NameContains", "b-3"}})), ElementsAre("job-3"));
    EXPECT_THAT(names(Json::object({{"StatusEquals", "Failed"}})), IsEmpty());
    EXPECT_THAT(names(Json::object({{"WarmPoolStatusEquals", "Available"}})), IsEmpty());
    const Json third = running.describe("job-2").at("CreationTime");
    EXPECT_THAT(names(Json::object({{"CreationTimeBefore", third}})),
                ElementsAre("job-0", "job-1"));
    EXPECT_THAT(names(Json::object({{"CreationTimeAfter", third}, {"SortBy", "Name"}})),
                ElementsAre("job-3", "job-4", "job-5", "job-6"));
}

TEST_F(ApiTest, tags_are_added_listed_and_deleted_by_arn_in_any_case) {
    Json request = testing::RunningService::request("job");
    request.set("Tags", Json::array({Json::object({{"Key", "a"}, {"Value", "1"}})}));
    std::string arn = running.admin->call("SageMaker.CreateTrainingJob", request)
                          .at("TrainingJobArn")
                          .as_string();
    EXPECT_FALSE(running.describe("job").find("Tags"));
    const Json more = Json::array({Json::object({{"Key", "b"}, {"Value", ""}})});
    running.admin->call("SageMaker.AddTags", Json::object({{"ResourceArn", arn}, {"Tags", more}}));
    running.admin->call("SageMaker.DeleteTags",
                        Json::object({{"ResourceArn", arn}, {"TagKeys", Json::array({"a"})}}));
    EXPECT_EQ(
        running.admin->call("SageMaker.ListTags", Json::object({{"ResourceArn", arn}})).at("Tags"),
        more);
    EXPECT_THAT(outcome("SageMaker.AddTags", Json::object({{"ResourceArn", arn}})),
                ::testing::HasSubstr("Value null at 'tags' failed to satisfy constraint"));
    const Json nowhere = Json::object({{"ResourceArn", arn + "x"}, {"Tags", more}});
    EXPECT_EQ(outcome("SageMaker.AddTags", nowhere),
              "ValidationException: Resource does not exist.");
    EXPECT_EQ(outcome("SageMaker.ListTags", nowhere),
              "ValidationException: Resource does not exist.");
}

class LogsApiTest : public ApiTest {
  protected:
    Json logs(const std::string& operation, Json request) {
        request.set("logGroupName", kGroup);
        return running.admin->call("Logs_20140328." + operation, request);
    }
    static std::vector<std::string> messages(const Json& page) {
        std::vector<std::string> found;
        for (const Json& event : page.at("events").as_array()) {
            found.push_back(event.at("message").as_string());
        }
        return found;
    }
};

TEST_F(LogsApiTest, every_node_has_one_stream_from_the_start_of_training_on) {
    running.create("job", 2);
    const Json prefix = Json::object({{"logStreamNamePrefix", "job/"}});
    EXPECT_THAT(logs("DescribeLogStreams", prefix).at("logStreams").as_array(), IsEmpty());
    for (const char* host : {"job-algo-1", "job-algo-2"}) {
        running.report(running.nodes.launched(host), spec::NodePhase::training);
    }
    const Json reply = logs("DescribeLogStreams", prefix);
    ASSERT_EQ(reply.at("logStreams").as_array().size(), 2u);
    EXPECT_FALSE(reply.find("nextToken"));
    EXPECT_EQ(reply.at("logStreams").as_array()[1].at("logStreamName").as_string(),
              "job/algo-2-1800000000");
    const Json page =
        logs("DescribeLogStreams", Json::object({{"logStreamNamePrefix", "job/"}, {"limit", 1}}));
    EXPECT_TRUE(page.find("nextToken"));
}

TEST_F(LogsApiTest, a_log_is_read_forwards_to_its_end_and_again_when_there_is_more) {
    const spec::NodeConfig node = training("job");
    running.append(node, 0, "one\ntwo\nthr");
    const Json stream("job/algo-1-1800000000");
    const Json first =
        logs("GetLogEvents", Json::object({{"logStreamName", stream}, {"startFromHead", true}}));
    EXPECT_THAT(messages(first), ElementsAre("one", "two"));
    const Json next = first.at("nextForwardToken");
    const Json request = Json::object({{"logStreamName", stream}, {"nextToken", next}});
    const Json end = logs("GetLogEvents", request);
    EXPECT_THAT(messages(end), IsEmpty());
    EXPECT_EQ(end.at("nextForwardToken"), next);
    running.append(node, 11, "ee\n");
    EXPECT_THAT(messages(logs("GetLogEvents", request)), ElementsAre("three"));
    const Json last = logs("GetLogEvents", Json::object({{"logStreamName", stream}, {"limit", 2}}));
    EXPECT_THAT(messages(last), ElementsAre("two", "three"));
    const Json before = logs(
        "GetLogEvents",
        Json::object({{"logStreamName", stream}, {"nextToken", last.at("nextBackwardToken")}}));
    EXPECT_THAT(messages(before), ElementsAre("one"));
}

TEST_F(LogsApiTest, a_search_merges_streams_by_time_and_pages_without_loss) {
    running.create("job", 2);
    const spec::NodeConfig a = running.nodes.launched("job-algo-1");
    const spec::NodeConfig b = running.nodes.launched("job-algo-2");
    for (const auto* node : {&a, &b}) running.report(*node, spec::NodePhase::training);
    std::int64_t size_a = 0;
    std::int64_t size_b = 0;
    for (int i = 0; i < 6; ++i) {
        const std::string line = "line " + std::to_string(i) + "\n";
        size_a = running.append(a, size_a, "a " + line + "A " + line);
        size_b = running.append(b, size_b, "b " + line);
        running.clock.advance(std::chrono::milliseconds(10));
    }
    std::vector<std::string> found;
    Json request = Json::object({{"logStreamNamePrefix", "job/"}, {"limit", 4}});
    while (true) {
        const Json page = logs("FilterLogEvents", request);
        for (const std::string& message : messages(page)) found.push_back(message);
        if (!page.find("nextToken")) break;
        request.set("nextToken", page.at("nextToken"));
    }
    ASSERT_EQ(found.size(), 18u);
    EXPECT_EQ(found[0], "a line 0");
    EXPECT_EQ(found[2], "b line 0");
    EXPECT_EQ(found[17], "b line 5");
    const Json filtered =
        logs("FilterLogEvents", Json::object({{"filterPattern", "\"line 3\" -A"}}));
    EXPECT_THAT(messages(filtered), ElementsAre("a line 3", "b line 3"));
    const Json& event = filtered.at("events").as_array()[0];
    const Json later =
        logs("FilterLogEvents", Json::object({{"startTime", event.at("timestamp").as_int() + 1}}));
    EXPECT_EQ(messages(later).size(), 6u);
}

TEST_F(LogsApiTest, what_does_not_exist_is_said_in_the_words_sdks_look_for) {
    EXPECT_EQ(outcome("Logs_20140328.DescribeLogStreams", Json::object({{"logGroupName", "x"}})),
              "ResourceNotFoundException: The specified log group does not exist.");
    EXPECT_EQ(outcome("Logs_20140328.GetLogEvents",
                      Json::object({{"logGroupName", kGroup}, {"logStreamName", "job/algo-1-7"}})),
              "ResourceNotFoundException: The specified log stream does not exist.");
    EXPECT_THAT(outcome("Logs_20140328.FilterLogEvents",
                        Json::object({{"logGroupName", kGroup}, {"filterPattern", "{ $.a = 1 }"}})),
                StartsWith("InvalidParameterException"));
}

TEST(LogFilterTest, regular_expressions_between_percent_signs) {
    EXPECT_TRUE(api::LogFilter("%[Ee]rror|fail%").matches("an Error"));
    EXPECT_TRUE(api::LogFilter("%^loss=\\d+\\.\\d{2,3}$%").matches("loss=1.234"));
    EXPECT_FALSE(api::LogFilter("%^loss%").matches("a loss"));
    EXPECT_FALSE(api::LogFilter("a -%b+%").matches("a bbb"));
    EXPECT_TRUE(api::LogFilter("?%x% ?%b$% a").matches("a b"));
    for (const char* bad : {"%(a)%", "%a", "%a b%", "%*%", "%%", "%a% %b% %c%", "%\xc3\xa9%"}) {
        EXPECT_THROW(api::LogFilter{bad}, Error) << bad;
    }
    // Backtracking would take longer than the universe has.
    const std::string line(100'000, 'a');
    EXPECT_FALSE(api::LogFilter("%[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*[0-9]%").matches(line));
}

TEST(LogFilterTest, a_sign_before_nothing_is_refused) {
    for (const char* bad : {"-", "?", "a -", "- a", "?\ta"}) {
        EXPECT_THROW(api::LogFilter{bad}, Error) << bad;
    }
}

TEST(LogFilterTest, terms_alternatives_and_exclusions) {
    EXPECT_TRUE(api::LogFilter("").matches("anything"));
    EXPECT_TRUE(api::LogFilter("b a").matches("a b"));
    EXPECT_TRUE(api::LogFilter("b\r\na").matches("a b"));
    EXPECT_FALSE(api::LogFilter("a c").matches("a b"));
    EXPECT_TRUE(api::LogFilter("?x ?b").matches("a b"));
    EXPECT_FALSE(api::LogFilter("?x ?y").matches("a b"));
    EXPECT_FALSE(api::LogFilter("a -b").matches("a b"));
    EXPECT_TRUE(api::LogFilter("-\"b a\" a").matches("a b"));
    EXPECT_FALSE(api::LogFilter("\"b a\"").matches("a b"));
    EXPECT_THROW(api::LogFilter("\"open"), Error);
}

TEST(PageTokenTest, a_token_belongs_to_its_query) {
    const Json query = Json::object({{"NameContains", "a"}, {"MaxResults", 3}});
    const std::string token = api::make_page_token(query, Json(7));
    EXPECT_EQ(
        api::read_page_token(
            Json::object({{"MaxResults", 5}, {"NextToken", token}, {"NameContains", "a"}}), token),
        Json(7));
    EXPECT_THROW(api::read_page_token(Json::object({{"NameContains", "b"}}), token), Error);
    for (const char* forged : {"", "x", "e30=", "bnVsbA=="}) {
        EXPECT_THROW(api::read_page_token(query, forged), Error) << forged;
    }
}

}  // namespace
}  // namespace gruca::service
