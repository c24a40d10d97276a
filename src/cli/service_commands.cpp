#include <fcntl.h>

#include <algorithm>
#include <csignal>
#include <ostream>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process_id.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "cli/command.h"

namespace gruca::cli {
namespace {
namespace fs = std::filesystem;

constexpr auto kStartPatience = std::chrono::seconds(30);
constexpr auto kEndPatience = std::chrono::seconds(60);
constexpr auto kPollEvery = Duration(50);
constexpr std::size_t kLogTailBytes = 2000;
constexpr int kPageMax = 100;

fs::path data_dir_of(Context& context, const Arguments& arguments) {
    return choose_data_dir(arguments.find("--data-dir"), context.environment);
}

std::string log_tail(const fs::path& log) {
    std::string text = read_file(log);
    if (text.size() <= kLogTailBytes) return text;
    text.erase(0, text.size() - kLogTailBytes);
    return text.substr(text.find('\n') + 1);
}

void print_how_to_use(Context& context, const Installation& service) {
    context.out << "endpoint:  " << service.endpoint << "\n"
                << "data:      " << service.data_dir.string() << "\n"
                << "Use it with the AWS CLI:\n"
                << "  export AWS_SHARED_CREDENTIALS_FILE="
                << (service.data_dir / "credentials").string() << " AWS_PROFILE=gruca\n"
                << "  aws sagemaker list-training-jobs --region " << service.region
                << " --endpoint-url " << service.endpoint << "\n"
                << "or with:  gruca job create --help\n";
}

bool answers(Context& context, const Installation& service) {
    return !run_guarded([&] { context.connect(service, false)->caller_arn(); });
}

// Waits until the child has announced itself and answers. It is killed when it does not.
Installation wait_until_it_answers(Context& context, Subprocess& child, const fs::path& data_dir,
                                   const fs::path& log) {
    const auto begin = context.clock.steady_now();
    for (;;) {
        if (const auto ended = child.wait_for(kPollEvery)) {
            throw Error(ErrorCode::unavailable, "gruca-service ended with " + ended->describe() +
                                                    "; it said:\n" + log_tail(log));
        }
        if (context.interrupted()) {
            throw Error(ErrorCode::cancelled, "interrupted; the service is not running");
        }
        const auto found = find_service(data_dir);
        if (found && found->pid == child.pid() && answers(context, *found)) return *found;
        if (context.clock.steady_now() - begin > kStartPatience) {
            throw Error(ErrorCode::deadline_exceeded,
                        "gruca-service does not answer; its log is " + log.string());
        }
    }
}

int start_service(Context& context, const Arguments& arguments) {
    const fs::path data_dir = data_dir_of(context, arguments);
    if (const auto running = find_service(data_dir)) {
        context.out << "the service is already running, process " << running->pid << "\n";
        print_how_to_use(context, *running);
        return 0;
    }
    fs::create_directories(data_dir);
    fs::permissions(data_dir, fs::perms::owner_all);
    const fs::path log = data_dir / "service.log";
    const UniqueFd log_fd = open_file(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    SpawnOptions options{
        .argv = {(context.program_dir / "gruca-service").string(), "--data-dir", data_dir.string()},
        .stdout_fd = log_fd.get(),
        .stderr_fd = log_fd.get(),
        .new_session = true};
    if (const auto port = arguments.find("--port")) {
        options.argv.insert(options.argv.end(), {"--port", *port});
    }
    options.argv.insert(options.argv.end(), arguments.rest().begin(), arguments.rest().end());
    context.interrupted();  // From now on Ctrl-C ends the waiting, and the service with it.
    Subprocess child(options);
    const Installation started = wait_until_it_answers(context, child, data_dir, log);
    child.release();
    context.out << "the service is running, process " << started.pid << "\n";
    print_how_to_use(context, started);
    return 0;
}

std::vector<std::string> unfinished_jobs(Api& api) {
    std::vector<std::string> names;
    for (const char* status : {"InProgress", "Stopping"}) {
        Json request = Json::object({{"StatusEquals", status}, {"MaxResults", kPageMax}});
        for (;;) {
            const Json page = api.call("SageMaker.ListTrainingJobs", request);
            for (const Json& job : page.at("TrainingJobSummaries").as_array()) {
                names.push_back(job.at("TrainingJobName").as_string());
            }
            const std::string next = page.get_string("NextToken");
            if (next.empty()) break;
            request.set("NextToken", next);
        }
    }
    return names;
}

int print_status(Context& context, const Arguments& arguments) {
    const Installation service = require_service(data_dir_of(context, arguments));
    const std::unique_ptr<Api> api = context.connect(service, false);
    const std::string arn = api->caller_arn();
    if (arguments.has("--json")) {
        print_json(context, service.facts);
        return 0;
    }
    context.out << "the service is running, process " << service.pid << "\n"
                << "caller:    " << arn << "\n"
                << "jobs:      " << unfinished_jobs(*api).size() << " not finished\n";
    print_how_to_use(context, service);
    return 0;
}

void stop_jobs(Context& context, Api& api, std::chrono::seconds patience) {
    const auto begin = context.clock.steady_now();
    for (const std::string& job : unfinished_jobs(api)) {
        // It may have ended, or be stopping, by now; then there is nothing to do.
        run_guarded([&] {
            api.call("SageMaker.StopTrainingJob", Json::object({{"TrainingJobName", job}}));
        });
        context.out << "stopping the job " << job << "\n";
    }
    context.out.flush();
    for (;;) {
        const std::vector<std::string> left = unfinished_jobs(api);
        if (left.empty()) return;
        if (context.clock.steady_now() - begin > patience) {
            throw Error(ErrorCode::deadline_exceeded,
                        "a job does not stop, the service goes on: " + left.front());
        }
        context.pause(kPollEvery);
    }
}

int stop_service(Context& context, const Arguments& arguments) {
    const fs::path data_dir = data_dir_of(context, arguments);
    const auto service = find_service(data_dir);
    if (!service) {
        context.out << "the service is not running (data directory " << data_dir.string() << ")\n";
        return 0;
    }
    const auto process = process_id_of(service->pid);
    const std::unique_ptr<Api> api = context.connect(*service, false);
    const std::vector<std::string> jobs = unfinished_jobs(*api);
    if (!jobs.empty() && !arguments.has("--stop-jobs")) {
        std::string names;
        for (const std::string& job : jobs) names += (names.empty() ? "" : ", ") + job;
        throw Error(ErrorCode::precondition_failed,
                    "jobs are not finished; wait for them, or stop them too with: gruca service "
                    "stop --stop-jobs (" +
                        names + ")");
    }
    if (!jobs.empty()) stop_jobs(context, *api, parse_duration(arguments.get("--timeout", "5m")));
    if (process) {
        const UniqueFd ending = open_process(*process);
        signal_process(ending, SIGTERM);
        if (!wait_for_end(ending, kEndPatience)) {
            throw Error(ErrorCode::deadline_exceeded,
                        "the service was told to end and has not; see service.log in " +
                            data_dir.string() + ", process " + std::to_string(service->pid));
        }
    }
    context.out << "the service has ended\n";
    return 0;
}

}  // namespace

std::vector<Command> service_commands() {
    return {
        {.shape = {.name = "gruca service start",
                   .summary =
                       "Starts the service in the background and returns when it answers. Options "
                       "not listed here are passed to gruca-service; gruca-service --help lists "
                       "them.",
                   .options = {data_dir_option(),
                               {.name = "--port",
                                .value = "<port>",
                                .help = "Where it listens. 0: any free port."}},
                   .rest = RestOfWords::unknown,
                   .example = "gruca service start --slots 8"},
         .run = start_service},
        {.shape = {.name = "gruca service status",
                   .summary = "Says whether the service runs, and where.",
                   .options = {json_option(), data_dir_option()},
                   .example = "gruca service status"},
         .run = print_status},
        {.shape = {.name = "gruca service stop",
                   .summary = "Ends the service. Refused while jobs are not finished, unless they "
                              "are to be stopped too.",
                   .options = {{.name = "--stop-jobs", .help = "Stop every job first, and wait."},
                               {.name = "--timeout",
                                .value = "<duration>",
                                .help = "How long to wait for the jobs. Default: 5m."},
                               data_dir_option()},
                   .example = "gruca service stop --stop-jobs"},
         .run = stop_service},
    };
}

}  // namespace gruca::cli
