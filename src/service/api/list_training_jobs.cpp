#include "base/error.h"
#include "service/api/operations.h"
#include "service/api/page_token.h"
#include "service/api/request.h"

namespace gruca::service::api {
namespace {

constexpr std::int64_t kPageJobsMax = 100;

struct Request {
    JobQuery query = {};
    bool nothing = false;  // Asks for what no job of ours has: a warm pool or a training plan.
};

JobOrder order_from(const std::string& sort_by) {
    if (sort_by == "Name") return JobOrder::name;
    return sort_by == "Status" ? JobOrder::status : JobOrder::creation;
}

JobPlace from_token(const Json& request, const std::string& token) {
    const Json place = read_page_token(request, token);
    const Json::Array& parts = place.as_array();
    if (parts.size() != 3) throw Error(ErrorCode::invalid_argument, "the NextToken is not valid");
    return {parts[0].as_string(), parts[1].as_int(), parts[2].as_int()};
}

Request read_request(const Json& request) {
    RequestReader read(request);
    Request wanted;
    JobQuery& query = wanted.query;
    const std::string token = read.text("NextToken", {.length_max = 8192});
    query.count_max = static_cast<std::size_t>(
        read.integer("MaxResults", {.min = 1, .max = kPageJobsMax, .otherwise = kPageJobsMax}));
    query.created_after = read.seconds("CreationTimeAfter");
    query.created_before = read.seconds("CreationTimeBefore");
    query.modified_after = read.seconds("LastModifiedTimeAfter");
    query.modified_before = read.seconds("LastModifiedTimeBefore");
    query.name_contains =
        read.text("NameContains", {.length_max = 63, .pattern = "^[a-zA-Z0-9\\-]+$"});
    query.status = read.text("StatusEquals", {.values = {"InProgress", "Completed", "Failed",
                                                         "Stopping", "Stopped", "Deleting"}});
    query.order = order_from(read.text("SortBy", {.values = {"Name", "CreationTime", "Status"}}));
    query.descending =
        read.text("SortOrder", {.values = {"Ascending", "Descending"}}) == "Descending";
    const std::string pool = read.text("WarmPoolStatusEquals",
                                       {.values = {"Available", "Terminated", "Reused", "InUse"}});
    const std::string plan =
        read.text("TrainingPlanArnEquals", {.length_min = 50, .length_max = 2048});
    wanted.nothing = !pool.empty() || !plan.empty();
    read.finish();
    if (!token.empty()) query.after = from_token(request, token);
    return wanted;
}

Json to_json(const JobSummary& job) {
    Json one = Json::object({{"TrainingJobName", job.name},
                             {"TrainingJobArn", job.arn},
                             {"CreationTime", epoch_seconds(job.created)}});
    if (job.over && job.ended) one.set("TrainingEndTime", epoch_seconds(*job.ended));
    one.set("LastModifiedTime", epoch_seconds(job.modified));
    one.set("TrainingJobStatus", job.status);
    one.set("SecondaryStatus", job.secondary);
    return one;
}

}  // namespace

Outcome list_training_jobs(const Context& context, const Call& call) {
    const Request wanted = read_request(call.request);
    const JobPage page = wanted.nothing ? JobPage() : context.jobs.list(wanted.query);
    Json summaries = Json::array();
    for (const JobSummary& job : page.jobs) summaries.push(to_json(job));
    Json reply = Json::object({{"TrainingJobSummaries", std::move(summaries)}});
    if (page.more) {
        const auto [text, ms, number] = place_of(page.jobs.back(), wanted.query.order);
        reply.set("NextToken", make_page_token(call.request, Json::array({text, ms, number})));
    }
    return reply;
}

}  // namespace gruca::service::api
