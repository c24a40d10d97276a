#include <algorithm>
#include <chrono>

#include "service/api/operations.h"
#include "service/api/request.h"

namespace gruca::service::api {
namespace {

Json transitions_of(const control::Job& job) {
    Json list = Json::array();
    for (const control::Transition& row : job.transitions) {
        Json one = Json::object({{"Status", row.status}, {"StartTime", epoch_seconds(row.start)}});
        if (row.end) one.set("EndTime", epoch_seconds(*row.end));
        one.set("StatusMessage", row.message);
        list.push(std::move(one));
    }
    return list;
}

// Wall clock between start and end, whatever the number of instances; at least one second, because
// clients divide by it.
std::int64_t billable_seconds(const control::Job& job) {
    const auto time = std::chrono::floor<std::chrono::seconds>(*job.ended - *job.training_started);
    return std::max<std::int64_t>(1, time.count());
}

Json describe(const control::Job& job) {
    Json reply = Json::object(
        {{"TrainingJobName", job.spec.name},
         {"TrainingJobArn", job.spec.arn},
         {"ModelArtifacts", Json::object({{"S3ModelArtifacts", job.spec.artifacts_uri()}})},
         {"TrainingJobStatus", job.status},
         {"SecondaryStatus", job.secondary}});
    if (!job.failure_reason.empty()) reply.set("FailureReason", job.failure_reason);
    for (const auto& [name, value] : job.spec.echo.as_object()) {
        if (!value.is_null() && reply.find(name) == nullptr) reply.set(name, value);
    }
    reply.set("CreationTime", epoch_seconds(job.created));
    if (job.training_started) {
        reply.set("TrainingStartTime", epoch_seconds(*job.training_started));
    }
    if (job.ended) reply.set("TrainingEndTime", epoch_seconds(*job.ended));
    reply.set("LastModifiedTime", epoch_seconds(job.modified));
    reply.set("SecondaryStatusTransitions", transitions_of(job));
    for (const char* flag : {"EnableNetworkIsolation", "EnableInterContainerTrafficEncryption",
                             "EnableManagedSpotTraining"}) {
        if (reply.find(flag) == nullptr) reply.set(flag, false);
    }
    if (job.is_terminal() && job.training_started && job.ended) {
        reply.set("TrainingTimeInSeconds", billable_seconds(job));
        reply.set("BillableTimeInSeconds", billable_seconds(job));
    }
    reply.set("ProfilingStatus", "Disabled");
    return reply;
}

}  // namespace

Outcome describe_training_job(const Context& context, const Call& call) {
    RequestReader read(call.request);
    const std::string name = read.text("TrainingJobName", job_name_rule());
    read.finish();
    if (call.caller.kind == KeyKind::job && call.caller.owner != name) {
        return Fault{.code = "AccessDeniedException",
                     .message = "a job's credentials describe that job only: " + name};
    }
    const JobPtr job = context.jobs.find(name);
    if (!job)
        return Fault{.code = "ValidationException", .message = "Requested resource not found."};
    return describe(*job);
}

Json epoch_seconds(TimePoint time) {
    return Json(static_cast<double>(to_ms(time)) / 1000.0);
}

}  // namespace gruca::service::api
