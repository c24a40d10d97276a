// service/service_fixture.h
//
// For tests of the whole service in one process: a real Service on loopback over a fresh directory,
// nodes that are only noted down, clients that sign, and the words tests use about jobs.
//
// Owned by the test's thread.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "net/aws_client.h"
#include "service/service.h"

namespace gruca::service::testing {

// Outlives services, as real nodes do.
class FakeNodes {
  public:
    // Waits until the node has been launched `times` times in all.
    spec::NodeConfig launched(const std::string& prefix, int times = 1) {
        std::unique_lock lock(mutex_);
        std::string found;
        const bool came = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
            for (const auto& [id, count] : launches_) {
                if (id.starts_with(prefix) && count >= times) found = id;
            }
            return !found.empty();
        });
        CHECK(came, "no node was launched: {}", prefix);
        return configs_.at(found);
    }
    // As if something slow were before them in their lane. Undone before the service ends.
    void hold_launches(bool hold) {
        const std::lock_guard lock(mutex_);
        hold_launches_ = hold;
        changed_.notify_all();
    }
    bool await_removal(const std::string& node_id) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(20),
                                 [&] { return removals_.contains(node_id); });
    }
    void refuse_launches(bool refuse) {
        const std::lock_guard lock(mutex_);
        refuse_ = refuse;
    }
    void set_left_log(const std::string& node_id, const std::string& path) {
        const std::lock_guard lock(mutex_);
        left_logs_[node_id] = path;
    }
    // Tells the running service that the node's agent has ended.
    void end(const std::string& node_id, const std::string& why = "its agent ended") {
        NodeListener listener;
        {
            const std::lock_guard lock(mutex_);
            listener = listener_;
        }
        listener({.node_id = node_id, .why = why});
    }

    class View final : public cluster::Cluster {
      public:
        explicit View(FakeNodes& nodes) : nodes_(nodes) {}
        void launch(const spec::NodeConfig& config) override { nodes_.launch(config); }
        void remove(const std::string& node_id) override { nodes_.remove(node_id); }
        std::optional<std::string> left_log(const std::string& node_id) const override {
            return nodes_.left_log(node_id);
        }
        std::vector<std::string> nodes() const override { return nodes_.names(); }

      private:
        FakeNodes& nodes_;
    };

    std::unique_ptr<cluster::Cluster> view(NodeListener listener) {
        const std::lock_guard lock(mutex_);
        listener_ = std::move(listener);
        return std::make_unique<View>(*this);
    }

  private:
    void launch(const spec::NodeConfig& config) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !hold_launches_; });
        if (refuse_) throw Error(ErrorCode::resource_exhausted, "no process can be started");
        ++launches_[config.node_id];
        configs_[config.node_id] = config;
        changed_.notify_all();
    }
    void remove(const std::string& node_id) {
        const std::lock_guard lock(mutex_);
        configs_.erase(node_id);
        removals_[node_id] = true;
        changed_.notify_all();
    }
    std::optional<std::string> left_log(const std::string& node_id) const {
        const std::lock_guard lock(mutex_);
        const auto found = left_logs_.find(node_id);
        return found == left_logs_.end() ? std::nullopt : std::optional(found->second);
    }
    std::vector<std::string> names() const {
        const std::lock_guard lock(mutex_);
        std::vector<std::string> found;
        for (const auto& [id, config] : configs_) found.push_back(id);
        return found;
    }

    mutable std::mutex mutex_;  // Guards everything below.
    std::condition_variable changed_;
    std::map<std::string, int> launches_;
    std::map<std::string, spec::NodeConfig> configs_;
    std::map<std::string, bool> removals_;
    std::map<std::string, std::string> left_logs_;
    NodeListener listener_;
    bool refuse_ = false;
    bool hold_launches_ = false;
};

class RunningService {
  public:
    RunningService() { start(); }
    ~RunningService() { stop(); }

    void start() {
        ServiceOptions options;
        options.settings.data_dir = (scratch.path() / "data").string();
        options.settings.port = 0;
        options.settings.aws_profile = false;
        options.cores = 4;
        options.make_cluster = [this](const std::filesystem::path&, NodeListener listener) {
            return nodes.view(std::move(listener));
        };
        service = std::make_unique<Service>(options, clock, random);
        admin = client(admin_credentials());
    }
    void stop() { service.reset(); }
    void restart() {
        stop();
        start();
    }

    net::Credentials admin_credentials() const {
        const std::string ini = read_file(scratch.path() / "data" / "credentials");
        const auto value = [&](const std::string& key) {
            const std::size_t at = ini.find(key + " = ") + key.size() + 3;
            return ini.substr(at, ini.find('\n', at) - at);
        };
        return {.access_key = value("aws_access_key_id"),
                .secret_key = value("aws_secret_access_key")};
    }
    std::unique_ptr<net::AwsClient> client(const net::Credentials& credentials) const {
        return std::make_unique<net::AwsClient>(net::AwsClientOptions{.origin = service->endpoint(),
                                                                      .region = "eu-central-1",
                                                                      .credentials = credentials},
                                                clock);
    }
    std::unique_ptr<net::AwsClient> client_of(const spec::NodeConfig& node) const {
        return client({.access_key = node.access_key, .secret_key = node.secret_key});
    }

    static Json request(const std::string& name, int instances = 1) {
        return Json::object(
            {{"TrainingJobName", name},
             {"AlgorithmSpecification", Json::object({{"TrainingImage", "gruca/llm-trainer"},
                                                      {"TrainingInputMode", "File"}})},
             {"RoleArn", "arn:aws:iam::000000000000:role/train"},
             {"OutputDataConfig", Json::object({{"S3OutputPath", "s3://bucket/out"}})},
             {"ResourceConfig", Json::object({{"InstanceType", "ml.m5.large"},
                                              {"InstanceCount", instances},
                                              {"VolumeSizeInGB", 1}})},
             {"StoppingCondition", Json::object({{"MaxRuntimeInSeconds", 600}})}});
    }
    Json create(const std::string& name, int instances = 1) {
        return admin->call("SageMaker.CreateTrainingJob", request(name, instances));
    }
    Json describe(const std::string& name) {
        return admin->call("SageMaker.DescribeTrainingJob",
                           Json::object({{"TrainingJobName", name}}));
    }
    // Asks again and again, as clients do, until the job has ended.
    Json ended(const std::string& name) {
        const auto deadline = SystemClock().steady_now() + std::chrono::seconds(20);
        while (true) {
            const Json job = describe(name);
            if (job.find("TrainingTimeInSeconds") || job.find("FailureReason")) return job;
            CHECK(SystemClock().steady_now() < deadline, "still {}", job.dump());
        }
    }

    void report(const spec::NodeConfig& node, spec::NodePhase phase, int exit_code = 0) {
        spec::NodeReport report;
        report.node_id = node.node_id;
        report.phase = phase;
        report.ended = phase >= spec::NodePhase::uploading;
        report.exit_code = exit_code;
        report.ended_at = clock.now();
        client_of(node)->call("Gruca.ReportNode", report.to_json());
    }
    std::int64_t append(const spec::NodeConfig& node, std::int64_t offset,
                        const std::string& bytes) {
        return client_of(node)
            ->call_raw("Gruca.AppendLog", bytes,
                       {{"x-gruca-node", node.node_id}, {"x-gruca-offset", std::to_string(offset)}})
            .at("size")
            .as_int();
    }
    spec::NodeOrder poll(const spec::NodeConfig& node, std::int64_t seen) {
        return spec::NodeOrder::from_json(client_of(node)->call(
            "Gruca.PollOrder", Json::object({{"node", node.node_id}, {"seen_version", seen}})));
    }
    // Everything that a node does whose program runs well, from where it is to its end.
    void run_to_the_end(const spec::NodeConfig& node) {
        for (const spec::NodePhase phase :
             {spec::NodePhase::training, spec::NodePhase::uploading, spec::NodePhase::uploaded,
              spec::NodePhase::assembled}) {
            report(node, phase);
        }
        nodes.end(node.node_id);
    }

    const TempDir scratch;
    ManualClock clock{time_from_ms(1'800'000'000'123)};
    SystemRandom random;
    FakeNodes nodes;
    std::unique_ptr<Service> service;
    std::unique_ptr<net::AwsClient> admin;
};

}  // namespace gruca::service::testing
