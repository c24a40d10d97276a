#include "agent/container_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

spec::Task a_task() {
    spec::Task task;
    task.job_name = "job";
    task.job_arn = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job";
    task.region = "us-east-1";
    task.host = "algo-2";
    task.instance_type = "ml.m5.large";
    task.image = "gruca/host";
    task.entrypoint = {"python3", "train.py"};
    for (int i = 1; i <= 10; ++i) {
        task.hosts.push_back("algo-" + std::to_string(i));
        task.addresses.push_back("127.64.0." + std::to_string(i));
    }
    task.hyperparameters = Json::object({{"epochs", "3"}, {"program", "\"train.py\""}});
    task.channels = {{.name = "train",
                      .s3_uri = "s3://b/train",
                      .input_mode = "File",
                      .distribution = "ShardedByS3Key",
                      .content_type = "text/csv",
                      .record_wrapper = "None"},
                     {.name = "test",
                      .s3_uri = "s3://b/test",
                      .input_mode = "File",
                      .distribution = "FullyReplicated",
                      .content_type = "",
                      .record_wrapper = "None"}};
    task.threads = 2;
    task.job_access_key = "ASIA";
    task.job_secret_key = "secret";
    task.job_session_token = "token";
    return task;
}

class ContainerFiles : public testing::Test {
  protected:
    Json config(const std::string& name) const {
        return Json::parse(read_file(scratch.path() / "input" / "config" / name));
    }
    const TempDir scratch;
};

TEST_F(ContainerFiles, the_configuration_is_what_sagemaker_containers_read) {
    write_container_files(a_task(), scratch.path());
    EXPECT_EQ(config("hyperparameters.json").dump(), R"({"epochs":"3","program":"\"train.py\""})");
    EXPECT_EQ(config("inputdataconfig.json"), Json::parse(R"({
        "train": {"TrainingInputMode": "File", "S3DistributionType": "ShardedByS3Key",
                  "RecordWrapperType": "None", "ContentType": "text/csv"},
        "test": {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated",
                 "RecordWrapperType": "None"}})"));
    const Json resources = config("resourceconfig.json");
    EXPECT_EQ(resources.at("current_host").as_string(), "algo-2");
    EXPECT_EQ(resources.at("network_interface_name").as_string(), "lo");
    EXPECT_EQ(resources.at("hosts").as_array().at(0).as_string(), "algo-1");
    EXPECT_EQ(resources.at("hosts").as_array().at(1).as_string(), "algo-10");
    EXPECT_EQ(resources.at("hosts").as_array().at(2).as_string(), "algo-2");
    EXPECT_EQ(resources.at("instance_groups").as_array().at(0).at("hosts"), resources.at("hosts"));
    EXPECT_NE(resources.dump().find("\"topology\":null"), std::string::npos);
    EXPECT_FALSE(fs::exists(scratch.path() / "input" / "config" / "checkpointconfig.json"));
    for (const char* name :
         {"input/data/train", "input/data/test", "model", "output/data", "checkpoints"}) {
        EXPECT_TRUE(fs::is_directory(scratch.path() / name)) << name;
    }
}

TEST_F(ContainerFiles, a_checkpoint_config_is_announced_by_file) {
    spec::Task task = a_task();
    task.checkpoint = {.s3_uri = "s3://b/ckpt", .local_path = "/opt/ml/checkpoints"};
    write_container_files(task, scratch.path());
    EXPECT_EQ(config("checkpointconfig.json").dump(), R"({"LocalPath":"/opt/ml/checkpoints"})");
}

TEST_F(ContainerFiles, the_command_follows_docker) {
    spec::Task task = a_task();
    EXPECT_THAT(container_command(task, "/b"), ElementsAre("python3", "train.py"));
    task.arguments = {"--lr", "1"};
    EXPECT_THAT(container_command(task, "/b"), ElementsAre("python3", "train.py", "--lr", "1"));
    task.image = "gruca/llm-trainer";
    task.entrypoint = {};
    EXPECT_THAT(container_command(task, "/b"), ElementsAre("/b/gruca-train", "--lr", "1"));
    task.arguments = {};
    EXPECT_THAT(container_command(task, "/b"), ElementsAre("/b/gruca-train", "train"));
    task.image = "somebody/else";
    EXPECT_THROW(container_command(task, "/b"), Error);
    task.image = "gruca/host";
    EXPECT_THROW(container_command(task, "/b"), Error);
}

TEST_F(ContainerFiles, every_host_has_its_own_address) {
    const std::string hosts = hosts_file(a_task());
    EXPECT_NE(hosts.find("\n127.64.0.10 algo-10\n"), std::string::npos);
    EXPECT_EQ(hosts.find("127.0.0.1 localhost\n"), 0u);
}

}  // namespace
}  // namespace gruca::agent
