#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/job_logs.h"
#include "cli/job_report.h"
#include "cli/job_request.h"
#include "cli/job_view.h"

namespace gruca::cli {
namespace {

constexpr auto kPollEvery = Duration(500);
// A follower looks so often; less often at a job with many instances, of which a look is many
// calls.
constexpr auto kLookEvery = Duration(100);
constexpr std::size_t kInstancesPerLook = 16;
constexpr int kListedDefault = 20;
constexpr int kPageMax = 100;

const char* const kStatuses[] = {"InProgress", "Completed", "Failed", "Stopping", "Stopped"};

Json describe(Api& api, const std::string& job) {
    try {
        return api.call("SageMaker.DescribeTrainingJob", Json::object({{"TrainingJobName", job}}));
    } catch (Error& error) {
        error.add_context("describing the job " + job);
        throw;
    }
}

std::size_t instances_of(const Json& description) {
    const Json* resources = description.find("ResourceConfig");
    return resources ? static_cast<std::size_t>(resources->get_int("InstanceCount", 1)) : 1;
}

bool told_to_leave(Context& context, const std::string& job) {
    if (!context.interrupted()) return false;
    context.err << "\nno longer following; the job goes on\n"
                << "  follow it again: gruca job logs --follow " << job << "\n"
                << "  stop it:         gruca job stop " << job << "\n";
    return true;
}

// Shows the job until it is over; with follow false, shows what there is.
int show_logs(Context& context, Api& api, const std::string& job, bool follow,
              JobViewOptions options) {
    JobLogs logs(api, job);
    JobView view(context, options);
    for (;;) {
        const Json description = describe(api, job);
        view.take_description(description);
        const std::size_t instances = instances_of(description);
        logs.read_new(instances, [&](const LogLine& line) { view.show(line); });
        view.settle();
        if (!follow) return 0;
        if (is_over(description)) {
            if (!options.json) context.out << outcome_text(description);
            return exit_code_of_job(description);
        }
        context.pause(kLookEvery * (1 + instances / kInstancesPerLook));
        if (told_to_leave(context, job)) return kExitInterrupted;
    }
}

int follow_job(Context& context, Api& api, const std::string& job, const Arguments& arguments) {
    context.interrupted();  // From now on Ctrl-C ends the following.
    return show_logs(
        context, api, job, true,
        {.shows_statuses = true, .raw = arguments.has("--raw"), .json = arguments.has("--json")});
}

// Returns the last description, or nothing when the patience or the user's ended first.
std::optional<Json> wait_until_over(Context& context, Api& api, const std::string& job,
                                    std::optional<std::chrono::seconds> patience) {
    const auto begin = context.clock.steady_now();
    context.interrupted();
    for (;;) {
        Json description = describe(api, job);
        if (is_over(description)) return description;
        if (patience && context.clock.steady_now() - begin >= *patience) {
            throw Error(ErrorCode::deadline_exceeded,
                        "the job is still " + description.get_string("TrainingJobStatus") +
                            " after " + human_seconds(static_cast<double>(patience->count())) +
                            ": " + job);
        }
        context.pause(kPollEvery);
        if (context.interrupted()) {
            context.err << "\nno longer waiting; the job goes on: " << job << "\n";
            return std::nullopt;
        }
    }
}

int create_job(Context& context, const Arguments& arguments) {
    const Json request = job_request(arguments, context.in);
    const std::string job = request.at("TrainingJobName").as_string();
    const bool follows = arguments.has("--follow");
    const std::unique_ptr<Api> api = connect(context, arguments);
    const Json answer = api->call("SageMaker.CreateTrainingJob", request);
    if (arguments.has("--json")) {
        print_json(context, answer);
    } else {
        context.out << "created " << job << ", " << answer.get_string("TrainingJobArn") << "\n";
        if (!follows) context.out << "  follow it: gruca job logs --follow " << job << "\n";
    }
    if (!follows) return 0;
    return follow_job(context, *connect(context, arguments, true), job, arguments);
}

void print_list(Context& context, const Json::Array& jobs) {
    std::size_t width = 4;
    for (const Json& job : jobs) {
        width = std::max(width, job.get_string("TrainingJobName").size());
    }
    context.out << fmt::format("{:<{}}  {:<10}  {}\n", "NAME", width, "STATUS", "CREATED");
    for (const Json& job : jobs) {
        const std::string created = iso8601(time_member(job, "CreationTime"));
        context.out << fmt::format("{:<{}}  {:<10}  {}\n", job.get_string("TrainingJobName"), width,
                                   job.get_string("TrainingJobStatus"),
                                   created.substr(0, 10) + " " + created.substr(11, 8));
    }
}

int list_jobs(Context& context, const Arguments& arguments) {
    const auto wanted = static_cast<std::size_t>(
        parse_count("--max", arguments.get("--max", std::to_string(kListedDefault)), 1));
    Json request = Json::object({{"SortBy", "CreationTime"}, {"SortOrder", "Descending"}});
    if (const auto status = arguments.find("--status")) request.set("StatusEquals", *status);
    if (const auto part = arguments.find("--name-contains")) request.set("NameContains", *part);
    const std::unique_ptr<Api> api = connect(context, arguments);
    Json all = Json::array();
    for (;;) {
        const std::size_t left = wanted - all.as_array().size();
        request.set("MaxResults", std::min<std::size_t>(left, kPageMax));
        const Json page = api->call("SageMaker.ListTrainingJobs", request);
        for (const Json& job : page.at("TrainingJobSummaries").as_array()) all.push(job);
        const std::string next = page.get_string("NextToken");
        if (next.empty() || all.as_array().size() >= wanted) break;
        request.set("NextToken", next);
    }
    if (arguments.has("--json")) {
        print_json(context, Json::object({{"TrainingJobSummaries", all}}));
    } else {
        print_list(context, all.as_array());
    }
    return 0;
}

int describe_job(Context& context, const Arguments& arguments) {
    const std::string job = arguments.operand(0);
    const std::unique_ptr<Api> api = connect(context, arguments);
    const Json answer = describe(*api, job);
    if (arguments.has("--json")) {
        print_json(context, answer);
        return 0;
    }
    const Json* algorithm = answer.find("AlgorithmSpecification");
    const std::string reason = answer.get_string("FailureReason");
    context.out << outcome_text(answer) << (reason.empty() ? "" : hint_text(reason, job))
                << "ARN: " << answer.get_string("TrainingJobArn") << "\n"
                << "Image: " << (algorithm ? algorithm->get_string("TrainingImage") : "") << "\n"
                << "Instances: " << instance_text(answer) << "\n"
                << "Created: " << iso8601(time_member(answer, "CreationTime")) << "\n"
                << timeline_text(answer, context.clock.now())
                << nodes_text(
                       api->call("Gruca.DescribeNodes", Json::object({{"TrainingJobName", job}})));
    TrainingProgress progress;
    JobLogs(*api, job).read_last("algo-1",
                                 [&](const LogLine& line) { progress.take(line.message); });
    if (const auto line = progress.line()) context.out << "Training: " << *line << "\n";
    return 0;
}

int print_logs(Context& context, const Arguments& arguments) {
    const std::string job = arguments.operand(0);
    const bool follows = arguments.has("--follow");
    const std::unique_ptr<Api> api = connect(context, arguments, follows);
    if (follows) return follow_job(context, *api, job, arguments);
    return show_logs(
        context, *api, job, false,
        {.shows_statuses = false, .raw = arguments.has("--raw"), .json = arguments.has("--json")});
}

int wait_for_job(Context& context, const Arguments& arguments) {
    std::optional<std::chrono::seconds> patience;
    if (const auto timeout = arguments.find("--timeout")) patience = parse_duration(*timeout);
    const auto last = wait_until_over(context, *connect(context, arguments, true),
                                      arguments.operand(0), patience);
    if (!last) return kExitInterrupted;
    if (arguments.has("--json")) {
        print_json(context, *last);
    } else {
        context.out << outcome_text(*last);
    }
    return exit_code_of_job(*last);
}

int stop_job(Context& context, const Arguments& arguments) {
    const std::string job = arguments.operand(0);
    std::optional<std::chrono::seconds> patience;
    if (const auto wait = arguments.find("--wait")) patience = parse_duration(*wait);
    const std::unique_ptr<Api> api = connect(context, arguments);
    const Json answer =
        api->call("SageMaker.StopTrainingJob", Json::object({{"TrainingJobName", job}}));
    if (!patience) {
        if (arguments.has("--json")) {
            print_json(context, answer);
        } else {
            context.out << "stopping " << job << "\n";
        }
        return 0;
    }
    const auto last = wait_until_over(context, *api, job, patience);
    if (!last) return kExitInterrupted;
    if (arguments.has("--json")) {
        print_json(context, *last);
    } else {
        context.out << outcome_text(*last);
    }
    return 0;
}

OptionShape raw_option() {
    return {.name = "--raw", .help = "Print the trainer's event lines too."};
}

Command create_command() {
    Command command{
        .shape = {.name = "gruca job create",
                  .summary =
                      "Creates a training job and returns at once, unless --follow is given.",
                  .options = job_request_options(),
                  .rest = RestOfWords::command,
                  .rest_name = "[-- <command> [arguments]]",
                  .example = "gruca job create --name hello --image gruca/host --output s3://out "
                             "--follow -- sh -c 'echo hi'"},
        .run = create_job};
    command.shape.options.push_back(
        {.name = "--follow", .help = "Show status and log until the job is over."});
    command.shape.options.push_back(raw_option());
    command.shape.options.push_back(json_option());
    command.shape.options.push_back(data_dir_option());
    return command;
}

Command list_command() {
    std::string statuses;
    for (const char* status : kStatuses)
        statuses += (statuses.empty() ? "" : ", ") + std::string(status);
    return {.shape = {.name = "gruca job list",
                      .summary = "Lists training jobs, the newest first.",
                      .options = {{.name = "--status",
                                   .value = "<status>",
                                   .help = "Only jobs in it: " + statuses + "."},
                                  {.name = "--name-contains",
                                   .value = "<text>",
                                   .help = "Only jobs whose name has it."},
                                  {.name = "--max",
                                   .value = "<count>",
                                   .help = fmt::format("At most so many. Default: {}.",
                                                       kListedDefault)},
                                  json_option(),
                                  data_dir_option()},
                      .example = "gruca job list --status InProgress"},
            .run = list_jobs};
}

}  // namespace

std::vector<Command> job_commands() {
    return {
        create_command(),
        list_command(),
        {.shape = {.name = "gruca job describe",
                   .summary =
                       "Says how a training job stands and how it came there: how long each stage "
                       "took, where its nodes are, how far the training is, and what to do "
                       "about a failure.",
                   .options = {json_option(), data_dir_option()},
                   .operands = {"<job>"},
                   .example = "gruca job describe hello"},
         .run = describe_job},
        {.shape = {.name = "gruca job logs",
                   .summary =
                       "Prints what a training job has written so far. With --follow: until the "
                       "job is over, with changes of its status, its progress, and how it ended. "
                       "Ctrl-C ends the following, not the job.",
                   .options = {{.name = "--follow",
                                .help = "Go on until the job is over.",
                                .short_name = "-f"},
                               raw_option(),
                               json_option(),
                               data_dir_option()},
                   .operands = {"<job>"},
                   .example = "gruca job logs --follow hello"},
         .run = print_logs},
        {.shape = {.name = "gruca job wait",
                   .summary = fmt::format("Returns when a training job is over: with 0 when it is "
                                          "Completed or Stopped, with {} when it has Failed.",
                                          kExitJobFailed),
                   .options = {{.name = "--timeout",
                                .value = "<duration>",
                                .help = "Give up after it. Default: never."},
                               json_option(),
                               data_dir_option()},
                   .operands = {"<job>"},
                   .example = "gruca job wait hello --timeout 30m"},
         .run = wait_for_job},
        {.shape = {.name = "gruca job stop",
                   .summary = "Stops a training job: its programs get SIGTERM, and two minutes to "
                              "write a last checkpoint and the model.",
                   .options = {{.name = "--wait",
                                .value = "<duration>",
                                .help = "Return when the job is over. Default: return at once."},
                               json_option(),
                               data_dir_option()},
                   .operands = {"<job>"},
                   .example = "gruca job stop hello --wait 5m"},
         .run = stop_job},
    };
}

}  // namespace gruca::cli
