#include "agent/container_files.h"

#include <fcntl.h>

#include <algorithm>

#include "agent/job_network.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainerImage = "gruca/llm-trainer";
constexpr const char* kHostImage = "gruca/host";

Json resource_config(const spec::Task& task) {
    Json hosts = Json::array();
    for (const std::string& host : sorted_hosts(task)) hosts.push(host);
    const Json group = Json::object({{"instance_group_name", "homogeneousCluster"},
                                     {"instance_type", task.instance_type},
                                     {"hosts", hosts}});
    return Json::object({{"current_group_name", "homogeneousCluster"},
                         {"current_host", task.host},
                         {"current_instance_type", task.instance_type},
                         {"hosts", hosts},
                         {"instance_groups", Json::array({group})},
                         {"network_interface_name", interface_of(task)},
                         {"topology", nullptr}});
}

Json input_data_config(const spec::Task& task) {
    Json channels = Json::object();
    for (const spec::TaskChannel& channel : task.channels) {
        Json facts = Json::object({{"TrainingInputMode", channel.input_mode},
                                   {"S3DistributionType", channel.distribution},
                                   {"RecordWrapperType", channel.record_wrapper}});
        if (!channel.content_type.empty()) facts.set("ContentType", channel.content_type);
        channels.set(channel.name, facts);
    }
    return channels;
}

}  // namespace

std::vector<std::string> sorted_hosts(const spec::Task& task) {
    std::vector<std::string> hosts = task.hosts;
    std::sort(hosts.begin(), hosts.end());
    return hosts;
}

void write_container_files(const spec::Task& task, const fs::path& ml) {
    for (const char* name : {"input/config", "input/data", "model", "output/data", "checkpoints",
                             "code", "errors", "gruca/home", "gruca/checkpoints"}) {
        fs::create_directories(ml / name);
    }
    for (const spec::TaskChannel& channel : task.channels) {
        fs::create_directories(ml / "input" / "data" / channel.name);
    }
    // Not durable: after a power cut there is no job to read them.
    const auto write = [&](const char* name, const Json& content) {
        const UniqueFd file =
            open_file(ml / "input" / "config" / name, O_WRONLY | O_CREAT | O_TRUNC);
        write_all(file.get(), bytes_of(content.dump()));
    };
    write("hyperparameters.json", task.hyperparameters);
    write("resourceconfig.json", resource_config(task));
    write("inputdataconfig.json", input_data_config(task));
    if (task.checkpoint) {
        write("checkpointconfig.json", Json::object({{"LocalPath", task.checkpoint->local_path}}));
    }
}

std::string hosts_file(const spec::Task& task) {
    std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
    for (std::size_t i = 0; i < task.hosts.size(); ++i) {
        text += task.addresses.at(i) + " " + task.hosts[i] + "\n";
    }
    return text;
}

std::vector<std::string> container_command(const spec::Task& task, const fs::path& binaries) {
    std::vector<std::string> command;
    if (task.image == kTrainerImage) {
        command = {(binaries / "gruca-train").string()};
    } else if (task.image == kHostImage) {
        command = task.entrypoint;
    } else {
        throw Error(ErrorCode::invalid_argument,
                    "gruca has the images gruca/llm-trainer and gruca/host, and no other yet: " +
                        task.image);
    }
    if (command.empty()) {
        throw Error(ErrorCode::invalid_argument,
                    "image gruca/host has no program of its own: give ContainerEntrypoint");
    }
    if (!task.arguments.empty()) {
        command.insert(command.end(), task.arguments.begin(), task.arguments.end());
    } else if (task.entrypoint.empty()) {
        command.push_back("train");
    }
    return command;
}

bool writes_own_checkpoints(const spec::Task& task) {
    return task.image == kTrainerImage;
}

}  // namespace gruca::agent
