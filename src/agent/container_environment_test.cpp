#include "agent/container_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gruca::agent {
namespace {

using testing::Contains;
using testing::Not;
using testing::StartsWith;

constexpr const char* kEndpoint = "http://198.18.0.1:7717";

spec::Task a_task() {
    spec::Task task;
    task.job_name = "job";
    task.job_arn = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job";
    task.region = "us-east-1";
    task.host = "algo-2";
    task.instance_type = "ml.m5.large";
    for (int i = 1; i <= 10; ++i) {
        task.hosts.push_back("algo-" + std::to_string(i));
        task.addresses.push_back("198.18.0." + std::to_string(15 + i));
    }
    task.hyperparameters = Json::object({{"epochs", "3"},
                                         {"program", "\"train.py\""},
                                         {"plain", "a b"},
                                         {"batch-size", "[1, 2]"},
                                         {"sagemaker_program", "\"x.py\""}});
    spec::TaskChannel train;
    train.name = "train";
    task.channels = {train};
    task.threads = 2;
    task.job_access_key = "ASIA";
    task.job_secret_key = "secret";
    task.job_session_token = "token";
    return task;
}

TEST(ContainerEnvironment, a_script_made_for_a_sagemaker_image_finds_what_its_image_derives) {
    const auto environment = container_environment(a_task(), kEndpoint);
    for (const char* entry :
         {"SM_CURRENT_HOST=algo-2", "SM_MODEL_DIR=/opt/ml/model", "SM_CHANNELS=[\"train\"]",
          "SM_CHANNEL_TRAIN=/opt/ml/input/data/train", "SM_HP_EPOCHS=3", "SM_HP_PROGRAM=train.py",
          "SM_HP_PLAIN=a b", "SM_HP_BATCH-SIZE=[1,2]", "SM_NETWORK_INTERFACE_NAME=eth0",
          "SM_NUM_CPUS=2"}) {
        EXPECT_THAT(environment, Contains(entry));
    }
    EXPECT_THAT(environment, Contains(StartsWith("SM_HOSTS=[\"algo-1\",\"algo-10\",\"algo-2\"")));
    EXPECT_THAT(environment, Not(Contains(StartsWith("SM_HP_SAGEMAKER_PROGRAM"))));
}

TEST(ContainerEnvironment, hyperparameters_too_long_for_one_variable_are_left_to_their_file) {
    spec::Task task = a_task();
    for (int i = 0; i < 100; ++i) {
        task.hyperparameters.set("h" + std::to_string(i), std::string(2500, 'x'));
    }
    const auto environment = container_environment(task, kEndpoint);
    EXPECT_THAT(environment, Not(Contains(StartsWith("SM_HPS="))));
    EXPECT_THAT(environment, Contains(StartsWith("SM_HP_H99=xxx")));
}

TEST(ContainerEnvironment, mpirun_uses_the_interface_over_which_nodes_reach_each_other) {
    const auto own = container_environment(a_task(), kEndpoint);
    EXPECT_THAT(own, Contains("OMPI_MCA_btl_tcp_if_include=eth0"));
    EXPECT_THAT(own, Contains("OMPI_MCA_plm_rsh_agent=/opt/ml/gruca/bin/gruca-rsh"));
    spec::Task shared = a_task();
    for (std::string& address : shared.addresses) address = "127.64" + address.substr(6);
    const auto environment = container_environment(shared, kEndpoint);
    EXPECT_THAT(environment, Contains("OMPI_MCA_btl_tcp_if_include=lo"));
    EXPECT_THAT(environment, Contains("OMPI_MCA_oob_tcp_if_include=lo"));
    EXPECT_THAT(environment, Contains("SM_NETWORK_INTERFACE_NAME=lo"));
}

TEST(ContainerEnvironment, an_isolated_job_gets_no_keys_and_no_endpoint) {
    spec::Task task = a_task();
    task.isolated = true;
    const auto environment = container_environment(task, kEndpoint);
    for (const char* name :
         {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}) {
        EXPECT_THAT(environment, Not(Contains(StartsWith(name)))) << name;
    }
    EXPECT_THAT(environment, Contains("AWS_REGION=us-east-1"));
}

TEST(ContainerEnvironment, a_checkpoint_config_is_announced) {
    spec::Task task = a_task();
    task.checkpoint = {.s3_uri = "s3://b/ckpt", .local_path = "/opt/ml/checkpoints"};
    EXPECT_THAT(container_environment(task, kEndpoint),
                Contains("GRUCA_CHECKPOINT_URI=file:///opt/ml/gruca/checkpoints"));
    EXPECT_THAT(container_environment(a_task(), kEndpoint),
                Not(Contains(StartsWith("GRUCA_CHECKPOINT_URI"))));
}

TEST(ContainerEnvironment, the_requests_environment_wins_but_cannot_lie_about_the_job) {
    spec::Task task = a_task();
    task.environment = Json::object(
        {{"PATH", "/mine"}, {"TRAINING_JOB_NAME", "other"}, {"A", "b=c"}, {"HOSTNAME", "x"}});
    const auto environment = container_environment(task, kEndpoint);
    for (const char* entry : {"PATH=/mine", "A=b=c", "TRAINING_JOB_NAME=job", "HOSTNAME=algo-2",
                              "OMP_NUM_THREADS=2", "AWS_ENDPOINT_URL=http://198.18.0.1:7717",
                              "AWS_SESSION_TOKEN=token", "MASTER_ADDR=algo-1"}) {
        EXPECT_THAT(environment, Contains(entry));
    }
}

TEST(ContainerEnvironment, credentials_of_the_request_are_not_mixed_with_ours) {
    spec::Task task = a_task();
    task.environment = Json::object({{"AWS_ACCESS_KEY_ID", "AKIA"}});
    const auto environment = container_environment(task, kEndpoint);
    EXPECT_THAT(environment, Contains("AWS_ACCESS_KEY_ID=AKIA"));
    EXPECT_THAT(environment, Not(Contains(StartsWith("AWS_SESSION_TOKEN"))));
}

}  // namespace
}  // namespace gruca::agent
