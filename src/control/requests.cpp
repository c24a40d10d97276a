#include "control/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/lifecycle.h"

namespace gruca::control {
namespace {

constexpr std::string_view kNotFound = "Requested resource not found.";
constexpr std::string_view kNoIsolation =
    "1 validation error detected: Value 'true' at 'enableNetworkIsolation' failed to satisfy "
    "constraint: this service runs jobs in the machine's own network and cannot cut one off; "
    "`gruca-service` says at its start why, and --job-network gives jobs networks of their own";
constexpr std::string_view kNoSuchArn = "Resource does not exist.";

int queued_jobs(const State& state) {
    return static_cast<int>(
        std::count_if(state.jobs.begin(), state.jobs.end(), [](const auto& entry) {
            return !entry.second.is_terminal() && entry.second.nodes.empty();
        }));
}

Job* job_by_arn(State& state, const std::string& arn) {
    const Job* job = find_job_by_arn(state, arn);
    return job ? &state.jobs.at(job->spec.name) : nullptr;
}

}  // namespace

void handle(Change& change, const CreateJob& command) {
    State& state = change.state;
    const spec::TrainJob& spec = command.spec;
    if (const Job* same = find_job(state, spec.name)) {
        change.refuse(command.request, ErrorCode::already_exists,
                      fmt::format("Training job names must be unique within an AWS account and "
                                  "region, and a training job with this name already exists ({})",
                                  same->spec.arn));
        return;
    }
    if (spec.isolated && !state.settings.isolates) {
        change.refuse(command.request, ErrorCode::invalid_argument, std::string(kNoIsolation));
        return;
    }
    if (spec.instance_count > state.settings.slots) {
        change.refuse(
            command.request, ErrorCode::resource_exhausted,
            fmt::format("The account-level service limit '{} for training job usage' is {} "
                        "Instances, with current utilization of {} Instances and a request delta "
                        "of {} Instances. Please use AWS Service Quotas to request an increase for "
                        "this quota. If AWS Service Quotas is not available, contact AWS support "
                        "to request an increase for this quota.",
                        spec.instance_type, state.settings.slots, slots_used(state),
                        spec.instance_count));
        return;
    }
    if (queued_jobs(state) >= kQueuedJobsMax) {
        change.refuse(command.request, ErrorCode::resource_exhausted,
                      fmt::format("{} training jobs are waiting for capacity already, which is the "
                                  "limit; stop some or try again later",
                                  kQueuedJobsMax));
        return;
    }
    Job job;
    job.spec = spec;
    job.number = state.next_number++;
    job.created = change.now;
    job.seed = command.seed;
    job.tags = command.tags;
    job.credentials = command.credentials;
    Job& kept = state.jobs.emplace(spec.name, std::move(job)).first->second;
    change.move(kept, "InProgress", "Starting", "Starting the training job");
    change.reschedule = true;
    change.reply(command.request, Json::object({{"TrainingJobArn", spec.arn}}));
}

void handle(Change& change, const StopJob& command) {
    const auto found = change.state.jobs.find(command.name);
    if (found == change.state.jobs.end()) {
        change.refuse(command.request, ErrorCode::not_found, std::string(kNotFound));
        return;
    }
    Job& job = found->second;
    if (job.is_terminal()) {
        change.refuse(command.request, ErrorCode::precondition_failed,
                      fmt::format("The request was rejected because the training job is in status "
                                  "{}.",
                                  job.status));
        return;
    }
    change.reply(command.request, Json::object());
    if (job.cause != EndCause::none || job.released_at) return;  // Its end is decided already.
    change.set_cause(job, EndCause::stop_requested);
    advance(change, job);
}

void handle(Change& change, const AddTags& command) {
    Job* job = job_by_arn(change.state, command.arn);
    if (job == nullptr) {
        change.refuse(command.request, ErrorCode::not_found, std::string(kNoSuchArn));
        return;
    }
    auto tags = job->tags;
    for (const auto& [key, value] : command.tags) {
        const auto same = std::find_if(tags.begin(), tags.end(),
                                       [&key = key](const auto& tag) { return tag.first == key; });
        if (same == tags.end()) {
            tags.emplace_back(key, value);
        } else {
            same->second = value;
        }
    }
    if (tags.size() > static_cast<std::size_t>(kTagsMax)) {
        change.refuse(
            command.request, ErrorCode::invalid_argument,
            fmt::format("A resource may have at most {} tags; with these it would have {}",
                        kTagsMax, tags.size()));
        return;
    }
    if (tags != job->tags) {
        job->tags = std::move(tags);
        change.changed(*job);
    }
    change.reply(command.request, Json::object({{"Tags", tags_to_json(command.tags)}}));
}

void handle(Change& change, const DeleteTags& command) {
    Job* job = job_by_arn(change.state, command.arn);
    if (job == nullptr) {
        change.refuse(command.request, ErrorCode::not_found, std::string(kNoSuchArn));
        return;
    }
    const auto count = std::erase_if(job->tags, [&](const auto& tag) {
        return std::count(command.keys.begin(), command.keys.end(), tag.first) > 0;
    });
    if (count > 0) change.changed(*job);
    change.reply(command.request, Json::object());
}

}  // namespace gruca::control
