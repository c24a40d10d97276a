#include "running_service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <thread>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "control/machine.h"
#include "service/job_board.h"
#include "service/state/database.h"
#include "spec/train_job.h"

namespace gruca::bench {
namespace {

constexpr std::chrono::seconds kStartPatience{120};
constexpr int kJobsInTransaction = 2000;
constexpr std::int64_t kFirstCreatedMs = 1'764'547'200'000;  // 2025-12-01
constexpr int kInstancesTooMany = 100;

std::string setting(const std::string& ini, const std::string& name) {
    for (const std::string& line : split(ini, '\n')) {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos || trim(line.substr(0, equals)) != name) continue;
        return std::string(trim(std::string_view(line).substr(equals + 1)));
    }
    throw Error(ErrorCode::not_found, "the credentials file does not have " + name);
}

}  // namespace

RunningService::RunningService(std::filesystem::path programs, std::filesystem::path data,
                               int slots)
    : programs_(std::move(programs)), data_(std::move(data)), slots_(slots) {
    start();
}

RunningService::~RunningService() {
    if (!process_) return;
    process_->send_signal(SIGTERM);
    process_->wait();
}

void RunningService::start() {
    std::filesystem::create_directories(data_);
    std::filesystem::remove(data_ / "service.json");
    const UniqueFd log = open_file(data_ / "bench.log", O_WRONLY | O_CREAT | O_APPEND);
    process_ = std::make_unique<Subprocess>(SpawnOptions{
        .argv = {(programs_ / "gruca-service").string(), "--data-dir", data_.string(), "--port",
                 port_, "--slots", std::to_string(slots_), "--no-aws-profile"},
        .stdout_fd = log.get(),
        .stderr_fd = log.get()});
    const auto limit = clock_.steady_now() + kStartPatience;
    while (!std::filesystem::exists(data_ / "service.json")) {
        if (process_->wait_for(std::chrono::milliseconds(1)) || clock_.steady_now() > limit) {
            throw Error(ErrorCode::unavailable, "the service does not start: see its log: " +
                                                    (data_ / "bench.log").string());
        }
    }
    endpoint_ = Json::parse(read_file(data_ / "service.json")).at("endpoint").as_string();
    port_ = endpoint_.substr(endpoint_.rfind(':') + 1);
}

void RunningService::kill() {
    process_->send_signal(SIGKILL);
    process_->wait();
    process_.reset();
}

net::Credentials RunningService::credentials() const {
    const std::string ini = read_file(data_ / "credentials");
    return {.access_key = setting(ini, "aws_access_key_id"),
            .secret_key = setting(ini, "aws_secret_access_key")};
}

std::unique_ptr<net::AwsClient> RunningService::client() const {
    return std::make_unique<net::AwsClient>(
        net::AwsClientOptions{
            .origin = endpoint_, .region = "us-east-1", .credentials = credentials()},
        clock_);
}

Json job_request(const std::string& name, const std::string& command) {
    Json algorithm = Json::object({{"TrainingImage", "gruca/host"}, {"TrainingInputMode", "File"}});
    if (command.find(' ') == std::string::npos) {
        algorithm.set("ContainerEntrypoint", Json::array({command}));
    } else {
        algorithm.set("ContainerEntrypoint", Json::array({"/bin/sh", "-c"}));
        algorithm.set("ContainerArguments", Json::array({command}));
    }
    return Json::object(
        {{"TrainingJobName", name},
         {"AlgorithmSpecification", std::move(algorithm)},
         {"RoleArn", "arn:aws:iam::000000000000:role/gruca"},
         {"HyperParameters", Json::object({{"learning_rate", "0.0003"}, {"epochs", "3"}})},
         {"OutputDataConfig", Json::object({{"S3OutputPath", "s3://bench/out"}})},
         {"ResourceConfig",
          Json::object(
              {{"InstanceType", "ml.m5.large"}, {"InstanceCount", 1}, {"VolumeSizeInGB", 1}})},
         {"StoppingCondition", Json::object({{"MaxRuntimeInSeconds", 3600}})}});
}

std::string filled_name(int place) {
    // In the order of names the jobs lie otherwise than in the order of creation.
    return fmt::format("run-{:07}-{}", place * 7919LL % 1'000'003, place);
}

namespace {

// Replays what a completed job of one node goes through, with control itself.
control::Job filled_job(int place, bool over) {
    using spec::NodePhase;
    control::State state;
    state.settings.slots = kInstancesTooMany;
    state.next_number = place + 1;
    Json request = job_request(filled_name(place), "/bin/true");
    if (!over) {
        Json resources = request.at("ResourceConfig");
        resources.set("InstanceCount", kInstancesTooMany);
        request.set("ResourceConfig", std::move(resources));
    }
    const std::string name = filled_name(place);
    TimePoint now = time_from_ms(kFirstCreatedMs + place * 60'000LL);
    control::step(
        state,
        control::CreateJob{.request = "r",
                           .spec = spec::decode_create_training_job(
                               request, {.region = "us-east-1", .account = "000000000000"}),
                           .tags = {{"team", "bench"}},
                           .credentials = {.access_key = fmt::format("ASIA{:016}", place),
                                           .secret_key = std::string(40, 's'),
                                           .session_token = std::string(64, 't')},
                           .seed = fmt::format("{:016x}", place)},
        now);
    if (!over) {
        state.jobs.at(name).nodes.clear();
        return state.jobs.at(name);
    }
    const std::string node = state.jobs.at(name).nodes.front().id;
    for (const NodePhase phase : {NodePhase::ready, NodePhase::training, NodePhase::uploading,
                                  NodePhase::uploaded, NodePhase::assembled}) {
        now += std::chrono::seconds(1);
        spec::NodeReport report{.node_id = node, .phase = phase};
        report.ended = phase >= NodePhase::uploading;
        report.ended_at = now;
        control::step(state, control::NodeReported{.report = report}, now);
    }
    control::step(state, control::NodeLost{.node_id = node, .why = "its agent ended"}, now);
    control::step(state, control::NodeRemoved{.node_id = node}, now);
    CHECK(state.jobs.at(name).is_terminal(), "a filled job did not end: {}", name);
    return state.jobs.at(name);
}

}  // namespace

void fill_database(const std::filesystem::path& data, int over, int waiting) {
    std::filesystem::create_directories(data);
    service::Database database({.path = data / "state.db"});
    service::Changes changes;
    for (int place = 0; place < over + waiting; ++place) {
        const control::Job job = filled_job(place, place < over);
        changes.jobs.push_back({.summary = service::summary_of(job), .json = job.to_json().dump()});
        if (changes.jobs.size() < kJobsInTransaction && place + 1 < over + waiting) continue;
        database.commit(changes);
        changes = {};
    }
}

}  // namespace gruca::bench
