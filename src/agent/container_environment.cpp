#include "agent/container_environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "agent/container_files.h"
#include "agent/job_network.h"
#include "agent/remote_shell.h"
#include "base/boundary.h"

namespace gruca::agent {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::size_t kVariableBytesMax = 96u << 10;  // The kernel takes 128 KiB.

// A request's Environment cannot change these.
const std::set<std::string> kReserved = {"TRAINING_JOB_NAME", "TRAINING_JOB_ARN", "HOSTNAME",
                                         "GRUCA_CHECKPOINT_URI"};
constexpr std::array kCredentials = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                     "AWS_SESSION_TOKEN"};

std::string to_upper(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

Json names_of_hosts(const spec::Task& task) {
    Json names = Json::array();
    for (const std::string& host : sorted_hosts(task)) names.push(host);
    return names;
}

// A value is JSON where a client has made it so, and its own text otherwise.
Json decoded(const std::string& value) {
    Json json = value;
    run_guarded([&] { json = Json::parse(value); });
    return json;
}

void add_hyperparameters(Variables& variables, const spec::Task& task) {
    Json all = Json::object();
    for (const auto& [name, value] : task.hyperparameters.as_object()) {
        if (name.starts_with("sagemaker_")) continue;  // Of the client's tools, not the script's.
        const Json json = decoded(value.as_string());
        variables["SM_HP_" + to_upper(name)] = json.is_string() ? json.as_string()
                                               : json.is_null() ? ""
                                                                : json.dump();
        all.set(name, json);
    }
    const std::string text = all.dump();
    if (text.size() <= kVariableBytesMax) variables["SM_HPS"] = text;
}

void add_what_images_derive(Variables& variables, const spec::Task& task) {
    const std::string ml = kMl;
    variables.insert({{"SM_CURRENT_HOST", task.host},
                      {"SM_HOSTS", names_of_hosts(task).dump()},
                      {"SM_CURRENT_INSTANCE_TYPE", task.instance_type},
                      {"SM_NETWORK_INTERFACE_NAME", interface_of(task)},
                      {"SM_NUM_CPUS", std::to_string(task.threads)},
                      {"SM_NUM_GPUS", "0"},
                      {"SM_INPUT_DIR", ml + "/input"},
                      {"SM_INPUT_CONFIG_DIR", ml + "/input/config"},
                      {"SM_MODEL_DIR", ml + "/model"},
                      {"SM_OUTPUT_DIR", ml + "/output"},
                      {"SM_OUTPUT_DATA_DIR", ml + "/output/data"}});
    Json channels = Json::array();
    for (const spec::TaskChannel& channel : task.channels) {
        channels.push(channel.name);
        variables["SM_CHANNEL_" + to_upper(channel.name)] = ml + "/input/data/" + channel.name;
    }
    variables["SM_CHANNELS"] = channels.dump();
    add_hyperparameters(variables, task);
}

// /tmp is shared by all jobs, whose hosts have the same names: mpirun's files go to the job's /run.
// Nodes of one machine share its cores: a rank that waits has to give its core away.
void add_mpi(Variables& variables, const spec::Task& task) {
    const std::string interface = interface_of(task);
    variables.insert({{"OMPI_MCA_plm_rsh_agent",
                       std::string(kMl) + "/" + kRemoteShellDirectory + "/" + kRemoteShellName},
                      {"OMPI_MCA_btl_tcp_if_include", interface},
                      {"OMPI_MCA_oob_tcp_if_include", interface},
                      {"OMPI_MCA_orte_tmpdir_base", "/run"},
                      {"OMPI_MCA_mpi_yield_when_idle", "1"},
                      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
}

void add_service(Variables& variables, const spec::Task& task, const std::string& endpoint) {
    variables.insert({{"AWS_REGION", task.region}, {"AWS_DEFAULT_REGION", task.region}});
    if (task.isolated) return;  // It cannot reach the service, and gets no keys to it.
    variables.insert({{"AWS_ENDPOINT_URL", endpoint},
                      {"AWS_ACCESS_KEY_ID", task.job_access_key},
                      {"AWS_SECRET_ACCESS_KEY", task.job_secret_key},
                      {"AWS_SESSION_TOKEN", task.job_session_token}});
}

void add_the_requests(Variables& variables, const spec::Task& task) {
    const Json::Object& wanted = task.environment.as_object();
    // Credentials come as a set: a request that brings a key does not get our token beside it.
    for (const auto& [name, value] : wanted) {
        if (std::find(kCredentials.begin(), kCredentials.end(), name) == kCredentials.end()) {
            continue;
        }
        for (const char* ours : kCredentials) variables.erase(ours);
    }
    for (const auto& [name, value] : wanted) {
        if (!kReserved.contains(name)) variables[name] = value.as_string();
    }
}

}  // namespace

std::vector<std::string> container_environment(const spec::Task& task,
                                               const std::string& endpoint) {
    Variables variables = {{"PATH", std::string(kPath) + ":" + kMl + "/" + kRemoteShellDirectory},
                           {"HOME", kHome},
                           {"LANG", "C.UTF-8"},
                           {"MASTER_ADDR", "algo-1"},
                           {"OMP_NUM_THREADS", std::to_string(task.threads)},
                           {"OMP_WAIT_POLICY", "passive"}};
    add_service(variables, task, endpoint);
    add_what_images_derive(variables, task);
    add_mpi(variables, task);
    add_the_requests(variables, task);
    variables["TRAINING_JOB_NAME"] = task.job_name;
    variables["TRAINING_JOB_ARN"] = task.job_arn;
    variables["HOSTNAME"] = task.host;
    if (task.checkpoint)
        variables["GRUCA_CHECKPOINT_URI"] = std::string("file://") + kCheckpointMount;
    std::vector<std::string> result;
    for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
    return result;
}

}  // namespace gruca::agent
