// The service as a client sees it:
//
//   service_bench [--json] [--tiny] [--only NAME...]
//
// Service and peers are driven by one client in C++ that signs every call and keeps its connection,
// so that the client costs little and costs all the same. Seeds, names and counts are fixed.

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "base/boundary.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/temp_dir.h"
#include "figures.h"
#include "peers.h"
#include "running_service.h"
#include "s3_speed.h"

namespace {

using namespace gruca;
using namespace gruca::bench;
using namespace std::chrono_literals;

struct Options {
    bool json = false;
    bool tiny = false;
    std::vector<std::string> only = {};
    std::filesystem::path programs;
};

class Stopwatch {
  public:
    double ms() const {
        return std::chrono::duration<double, std::milli>(clock_.steady_now() - begin_).count();
    }
    double s() const { return ms() / 1000; }

  private:
    SystemClock clock_;
    std::chrono::steady_clock::time_point begin_ = clock_.steady_now();
};

Json named(const std::string& job) {
    return Json::object({{"TrainingJobName", job}});
}

std::string status_of(net::AwsClient& client, const std::string& job) {
    return client.call("SageMaker.DescribeTrainingJob", named(job))
        .at("TrainingJobStatus")
        .as_string();
}

void await_completion(net::AwsClient& client, const std::string& job) {
    for (const Stopwatch watch; watch.s() < 60;) {
        const std::string status = status_of(client, job);
        if (status == "Completed") return;
        if (status != "InProgress") break;
        std::this_thread::sleep_for(2ms);
    }
    throw Error(ErrorCode::internal, "a job did not complete: " + job);
}

// From the call to the first line read back, polling every 2 ms.
double first_line_ms(net::AwsClient& client, const std::string& job) {
    const Json events = Json::object(
        {{"logGroupName", "/aws/sagemaker/TrainingJobs"}, {"logStreamNamePrefix", job + "/"}});
    const Stopwatch watch;
    client.call("SageMaker.CreateTrainingJob", job_request(job, "echo first"));
    while (watch.s() < 60) {
        Json found;
        const auto error =
            run_guarded([&] { found = client.call("Logs_20140328.FilterLogEvents", events); });
        if (error && error->code() != ErrorCode::not_found) throw *error;
        if (!error && !found.at("events").as_array().empty()) return watch.ms();
        std::this_thread::sleep_for(2ms);
    }
    throw Error(ErrorCode::internal, "a job said nothing: " + job);
}

void create_to_first_log(const Options& options) {
    const TempDir scratch;
    RunningService service(options.programs, scratch.path() / "data", 8);
    const auto client = service.client();
    std::vector<double> times;
    const int jobs = options.tiny ? 2 : 40;
    for (int i = -2; i < jobs; ++i) {  // The first two warm up.
        const std::string job = fmt::format("first-log-{}", i + 2);
        const double ms = first_line_ms(*client, job);
        if (i >= 0) times.push_back(ms);
        await_completion(*client, job);
    }
    show({"create_to_first_log_ms_p50", percentile(times, 0.5), "ms", Beside{"goal", 100}},
         options.json);
    show({"create_to_first_log_ms_p99", percentile(times, 0.99), "ms", Beside{"goal", 300}},
         options.json);
}

void trivial_jobs(const Options& options) {
    const TempDir scratch;
    RunningService service(options.programs, scratch.path() / "data", 8);
    const auto client = service.client();
    const auto run = [&](const std::string& prefix, int jobs) {
        const Stopwatch watch;
        for (int i = 0; i < jobs; ++i) {
            client->call("SageMaker.CreateTrainingJob",
                         job_request(fmt::format("{}-{}", prefix, i), "/bin/true"));
        }
        const Json running = Json::object({{"StatusEquals", "InProgress"}, {"MaxResults", 1}});
        while (!client->call("SageMaker.ListTrainingJobs", running)
                    .at("TrainingJobSummaries")
                    .as_array()
                    .empty()) {
            std::this_thread::sleep_for(10ms);
        }
        const double seconds = watch.s();
        for (int i = 0; i < jobs; ++i) {
            const std::string job = fmt::format("{}-{}", prefix, i);
            if (status_of(*client, job) == "Completed") continue;
            throw Error(ErrorCode::internal, "a trivial job did not complete: " + job);
        }
        return jobs / seconds;
    };
    run("warm", options.tiny ? 2 : 40);
    const double ours = run("trivial", options.tiny ? 8 : 600);
    show({"trivial_jobs_per_s", ours, "jobs/s", Beside{"goal", 150}}, options.json);
    if (const auto slurm = options.tiny ? std::nullopt : measure_slurm(200)) {
        show({"trivial_jobs_beside_slurm_per_s", ours, "jobs/s",
              Beside{slurm->version, slurm->jobs_per_s}},
             options.json);
    }
}

void describe(const Options& options) {
    const TempDir scratch;
    RunningService service(options.programs, scratch.path() / "data", 4);
    const auto client = service.client();
    client->call("SageMaker.CreateTrainingJob", job_request("described", "/bin/true"));
    await_completion(*client, "described");
    std::vector<double> times;
    const int calls = options.tiny ? 20 : 5000;
    for (int i = -calls / 10; i < calls; ++i) {
        const Stopwatch watch;
        client->call("SageMaker.DescribeTrainingJob", named("described"));
        if (i >= 0) times.push_back(watch.ms());
    }
    show({"describe_ms_p50", percentile(times, 0.5), "ms", Beside{"goal", 0.5}}, options.json);
    show({"describe_ms_p99", percentile(times, 0.99), "ms", Beside{"goal", 3}}, options.json);

    std::atomic<int> done = 0;
    std::atomic<bool> over = false;
    std::vector<std::jthread> threads;
    const Stopwatch watch;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            const auto mine = service.client();
            while (!over) {
                mine->call("SageMaker.DescribeTrainingJob", named("described"));
                ++done;
            }
        });
    }
    std::this_thread::sleep_for(options.tiny ? 100ms : 5000ms);
    over = true;
    threads.clear();
    show({"describe_per_s", done / watch.s(), "calls/s", Beside{"goal", 5000}}, options.json);
}

// Every order, filters that match much, little and nothing, and the pages of each.
std::vector<Json> list_requests() {
    std::vector<Json> requests;
    for (const char* order : {"Name", "CreationTime", "Status"}) {
        for (const char* direction : {"Ascending", "Descending"}) {
            requests.push_back(Json::object({{"SortBy", order}, {"SortOrder", direction}}));
        }
        requests.push_back(Json::object({{"SortBy", order}, {"NameContains", "99"}}));
        requests.push_back(Json::object({{"SortBy", order}, {"NameContains", "nowhere"}}));
        requests.push_back(Json::object({{"SortBy", order}, {"StatusEquals", "Failed"}}));
        requests.push_back(Json::object({{"SortBy", order}, {"StatusEquals", "InProgress"}}));
        requests.push_back(Json::object({{"SortBy", order}, {"CreationTimeAfter", 1'900'000'000}}));
        requests.push_back(
            Json::object({{"SortBy", order}, {"LastModifiedTimeBefore", 1'766'000'000}}));
    }
    return requests;
}

void list_jobs(const Options& options) {
    const int jobs = options.tiny ? 200 : 100'000;
    const TempDir scratch;
    fill_database(scratch.path() / "data", jobs, 0);
    const Stopwatch starting;
    RunningService service(options.programs, scratch.path() / "data", 4);
    show({"service_start_100k_jobs_ms", starting.ms(), "ms"}, options.json);
    const auto client = service.client();
    std::vector<double> times;
    const int rounds = options.tiny ? 1 : 10;
    for (int round = 0; round < rounds; ++round) {
        for (Json request : list_requests()) {
            for (int page = 0; page < 3; ++page) {
                const Stopwatch watch;
                const Json reply = client->call("SageMaker.ListTrainingJobs", request);
                times.push_back(watch.ms());
                const std::string token = reply.get_string("NextToken");
                if (token.empty()) break;
                request.set("NextToken", token);
            }
        }
    }
    show({"list_100k_jobs_ms_p50", percentile(times, 0.5), "ms"}, options.json);
    show({"list_100k_jobs_ms_p99", percentile(times, 0.99), "ms", Beside{"goal", 20}},
         options.json);
}

// Killed with 9,000 jobs over and 1,000 waiting; back when a describe is answered.
void restart(const Options& options) {
    const int jobs = options.tiny ? 100 : 10'000;
    const TempDir scratch;
    fill_database(scratch.path() / "data", jobs - jobs / 10, jobs / 10);
    RunningService service(options.programs, scratch.path() / "data", 4);
    std::vector<double> times;
    for (int i = 0; i < (options.tiny ? 1 : 5); ++i) {
        service.kill();
        const Stopwatch watch;
        service.start();
        status_of(*service.client(), filled_name(jobs / 2));
        times.push_back(watch.ms());
    }
    show({"service_restart_10k_jobs_ms", percentile(times, 0.5), "ms", Beside{"goal", 1000}},
         options.json);
}

struct ApiSpeed {
    double creates_per_s = 0;
    double describe_ms_p50 = 0;
};

ApiSpeed measure_api(net::AwsClient& client, int jobs) {
    const Stopwatch watch;
    for (int i = 0; i < jobs; ++i) {
        client.call("SageMaker.CreateTrainingJob",
                    job_request(fmt::format("trivial-{}", i), "/bin/true"));
    }
    ApiSpeed speed{.creates_per_s = jobs / watch.s()};
    std::vector<double> times;
    for (int i = 0; i < jobs; ++i) {
        const Stopwatch call;
        status_of(client, fmt::format("trivial-{}", i));
        times.push_back(call.ms());
    }
    speed.describe_ms_p50 = percentile(times, 0.5);
    return speed;
}

// The calls of trivial jobs, beside moto, which checks no member and runs nothing: there every job
// is Completed at once, while ours are durable and run meanwhile.
void moto(const Options& options) {
    const int jobs = options.tiny ? 2 : 200;
    std::optional<ApiSpeed> theirs;
    if (const auto peer = start_moto()) {
        const SystemClock clock;
        net::AwsClient client({.origin = peer->origin(),
                               .region = "us-east-1",
                               .credentials = {.access_key = "AKIATEST", .secret_key = "secret"}},
                              clock);
        theirs = measure_api(client, jobs);
    }
    const TempDir scratch;
    RunningService service(options.programs, scratch.path() / "data", 8);
    const auto client = service.client();
    const ApiSpeed ours = measure_api(*client, jobs);
    for (int i = 0; i < jobs; ++i) await_completion(*client, fmt::format("trivial-{}", i));
    const auto beside = [&](double ApiSpeed::*which) {
        return theirs ? std::optional(Beside{"moto 5.2.5", *theirs.*which}) : std::nullopt;
    };
    show({"create_calls_per_s", ours.creates_per_s, "calls/s", beside(&ApiSpeed::creates_per_s)},
         options.json);
    show({"describe_while_running_ms_p50", ours.describe_ms_p50, "ms",
          beside(&ApiSpeed::describe_ms_p50)},
         options.json);
}

void s3(const Options& options) {
    const int objects = options.tiny ? 1 : 12;
    const int mib = options.tiny ? 1 : 48;
    std::optional<S3Speed> theirs;
    if (const auto peer = start_seaweedfs()) {
        theirs =
            measure_s3(peer->origin(), {.access_key = "any", .secret_key = "any"}, objects, mib);
    }
    const TempDir scratch;
    RunningService service(options.programs, scratch.path() / "data", 4);
    std::optional<S3Speed> ours;
    const auto error = run_guarded(
        [&] { ours = measure_s3(service.endpoint(), service.credentials(), objects, mib); });
    if (error) log_warning("the service's S3 cannot be measured: {}", error->message());
    const auto figure = [&](const char* name, double S3Speed::*which) {
        const auto beside =
            theirs ? std::optional(Beside{"SeaweedFS 4.48", *theirs.*which}) : std::nullopt;
        if (ours) show({name, *ours.*which, "MB/s", beside}, options.json);
        if (!ours && theirs) {
            show({std::string("seaweedfs_") + name, *theirs.*which, "MB/s"}, options.json);
        }
    };
    figure("s3_put_mb_per_s", &S3Speed::put_mb_per_s);
    figure("s3_get_mb_per_s", &S3Speed::get_mb_per_s);
}

struct Part {
    const char* name;
    void (*run)(const Options&);
};
constexpr std::array kParts = {Part{"describe", describe},
                               Part{"first-log", create_to_first_log},
                               Part{"trivial", trivial_jobs},
                               Part{"restart", restart},
                               Part{"list", list_jobs},
                               Part{"moto", moto},
                               Part{"s3", s3}};

Options read_options(int argc, char** argv) {
    Options options;
    options.programs =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "apps";
    bool only = false;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--json") {
            options.json = true;
        } else if (word == "--tiny") {
            options.tiny = true;
        } else if (word == "--only") {
            only = true;
        } else if (only && std::any_of(kParts.begin(), kParts.end(),
                                       [&](const Part& part) { return part.name == word; })) {
            options.only.push_back(word);
        } else {
            throw Error(ErrorCode::invalid_argument, "unknown argument: " + word);
        }
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    set_up_log("service_bench", LogLevel::info);
    const auto error = run_guarded([&] {
        const Options options = read_options(argc, argv);
        for (const Part& part : kParts) {
            const bool wanted = options.only.empty() ||
                                std::count(options.only.begin(), options.only.end(), part.name) > 0;
            if (wanted) part.run(options);
        }
    });
    if (!error) return 0;
    log_error("{}", error->what());
    return exit_code(error->code());
}
