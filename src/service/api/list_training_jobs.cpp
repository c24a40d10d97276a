#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "service/api/operations.h"
#include "service/api/page_token.h"
#include "service/api/request.h"

namespace gruca::service::api {
namespace {

constexpr std::int64_t kPageJobsMax = 100;

struct Query {
    std::optional<TimePoint> created_after = {};
    std::optional<TimePoint> created_before = {};
    std::optional<TimePoint> modified_after = {};
    std::optional<TimePoint> modified_before = {};
    std::string name_contains;
    std::string status;
    std::string sort_by;
    bool descending = false;
    bool nothing = false;  // Asks for what no job of ours has: a warm pool or a training plan.
    std::size_t jobs_max = kPageJobsMax;
    std::string token;
};

Query read_query(const Json& request) {
    RequestReader read(request);
    Query query;
    query.token = read.text("NextToken", {.length_max = 8192});
    query.jobs_max = static_cast<std::size_t>(
        read.integer("MaxResults", {.min = 1, .max = kPageJobsMax, .otherwise = kPageJobsMax}));
    query.created_after = read.seconds("CreationTimeAfter");
    query.created_before = read.seconds("CreationTimeBefore");
    query.modified_after = read.seconds("LastModifiedTimeAfter");
    query.modified_before = read.seconds("LastModifiedTimeBefore");
    query.name_contains =
        read.text("NameContains", {.length_max = 63, .pattern = "^[a-zA-Z0-9\\-]+$"});
    query.status = read.text("StatusEquals", {.values = {"InProgress", "Completed", "Failed",
                                                         "Stopping", "Stopped", "Deleting"}});
    query.sort_by = read.text("SortBy", {.values = {"Name", "CreationTime", "Status"}});
    query.descending =
        read.text("SortOrder", {.values = {"Ascending", "Descending"}}) == "Descending";
    const std::string pool = read.text("WarmPoolStatusEquals",
                                       {.values = {"Available", "Terminated", "Reused", "InUse"}});
    const std::string plan =
        read.text("TrainingPlanArnEquals", {.length_min = 50, .length_max = 2048});
    query.nothing = !pool.empty() || !plan.empty();
    read.finish();
    return query;
}

bool matches(const control::Job& job, const Query& query) {
    return !query.nothing && (!query.created_after || job.created > *query.created_after) &&
           (!query.created_before || job.created < *query.created_before) &&
           (!query.modified_after || job.modified > *query.modified_after) &&
           (!query.modified_before || job.modified < *query.modified_before) &&
           job.spec.name.find(query.name_contains) != std::string::npos &&
           (query.status.empty() || job.status == query.status);
}

// Jobs order by this; no two jobs have the same.
using Key = std::tuple<std::string, std::int64_t, std::int64_t>;

Key key_of(const control::Job& job, const Query& query) {
    if (query.sort_by == "Name") return {job.spec.name, 0, job.number};
    if (query.sort_by == "Status") return {job.status, 0, job.number};
    return {"", to_ms(job.created), job.number};
}

Json to_place(const Key& key) {
    return Json::array({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
}

Key from_place(const Json& place) {
    const Json::Array& parts = place.as_array();
    if (parts.size() != 3) throw Error(ErrorCode::invalid_argument, "the NextToken is not valid");
    return {parts[0].as_string(), parts[1].as_int(), parts[2].as_int()};
}

Json summary(const control::Job& job) {
    Json one = Json::object({{"TrainingJobName", job.spec.name},
                             {"TrainingJobArn", job.spec.arn},
                             {"CreationTime", epoch_seconds(job.created)}});
    if (job.is_terminal() && job.ended) one.set("TrainingEndTime", epoch_seconds(*job.ended));
    one.set("LastModifiedTime", epoch_seconds(job.modified));
    one.set("TrainingJobStatus", job.status);
    one.set("SecondaryStatus", job.secondary);
    return one;
}

}  // namespace

Outcome list_training_jobs(const Context& context, const Call& call) {
    const Query query = read_query(call.request);
    std::optional<Key> after;
    if (!query.token.empty()) after = from_place(read_page_token(call.request, query.token));

    std::vector<std::pair<Key, JobPtr>> found;
    for (JobPtr& job : context.jobs.all()) {
        if (!matches(*job, query)) continue;
        Key key = key_of(*job, query);
        if (after && (query.descending ? key >= *after : key <= *after)) continue;
        found.emplace_back(std::move(key), std::move(job));
    }
    std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
        return query.descending ? b.first < a.first : a.first < b.first;
    });
    const std::size_t count = std::min(found.size(), query.jobs_max);
    Json summaries = Json::array();
    for (std::size_t i = 0; i < count; ++i) summaries.push(summary(*found[i].second));
    Json reply = Json::object({{"TrainingJobSummaries", std::move(summaries)}});
    if (count < found.size()) {
        reply.set("NextToken", make_page_token(call.request, to_place(found[count - 1].first)));
    }
    return reply;
}

}  // namespace gruca::service::api
