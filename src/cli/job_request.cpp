#include "cli/job_request.h"

#include <istream>
#include <iterator>

#include "base/error.h"
#include "base/file.h"

namespace gruca::cli {
namespace {

constexpr const char* kRole = "arn:aws:iam::000000000000:role/gruca";
constexpr const char* kInstanceType = "ml.m5.large";
constexpr long long kMaxRuntimeS = 86400;
constexpr std::string_view kFileScheme = "file://";

Json read_request(std::string file, std::istream& in) {
    if (file == "-") {
        return Json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
    }
    if (file.starts_with(kFileScheme)) file.erase(0, kFileScheme.size());
    try {
        return Json::parse(read_file(file));
    } catch (Error& error) {
        error.add_context("reading " + file);
        throw;
    }
}

Json default_request() {
    return Json::object(
        {{"RoleArn", kRole},
         {"ResourceConfig",
          Json::object(
              {{"InstanceType", kInstanceType}, {"InstanceCount", 1}, {"VolumeSizeInGB", 1}})},
         {"StoppingCondition", Json::object({{"MaxRuntimeInSeconds", kMaxRuntimeS}})}});
}

// The member `name` of an object, made when absent, after `change`.
template <class Change>
void change_member(Json& request, std::string_view name, Change change) {
    const Json* before = request.find(name);
    Json member = before ? *before : Json::object();
    change(member);
    request.set(name, std::move(member));
}

Json channel(const std::string& name, const std::string& uri) {
    return Json::object(
        {{"ChannelName", name},
         {"DataSource", Json::object({{"S3DataSource", Json::object({{"S3DataType", "S3Prefix"},
                                                                     {"S3Uri", uri},
                                                                     {"S3DataDistributionType",
                                                                      "FullyReplicated"}})}})}});
}

Json strings(const std::vector<std::string>& words) {
    Json list = Json::array();
    for (const std::string& word : words) list.push(word);
    return list;
}

void set_algorithm(Json& request, const Arguments& arguments) {
    const auto image = arguments.find("--image");
    const std::vector<std::string>& command = arguments.rest();
    if (!image && command.empty()) return;
    change_member(request, "AlgorithmSpecification", [&](Json& algorithm) {
        if (image) algorithm.set("TrainingImage", *image);
        if (algorithm.find("TrainingInputMode") == nullptr) {
            algorithm.set("TrainingInputMode", "File");
        }
        if (command.empty()) return;
        algorithm.set("ContainerEntrypoint", strings({command.front()}));
        if (command.size() > 1) {
            algorithm.set("ContainerArguments", strings({command.begin() + 1, command.end()}));
        }
    });
}

void set_pairs(Json& request, const Arguments& arguments, std::string_view option,
               std::string_view member) {
    for (const std::string& text : arguments.all(option)) {
        const auto [name, value] = parse_pair(option, text);
        change_member(request, member, [&, n = name, v = value](Json& map) { map.set(n, v); });
    }
}

void set_channels(Json& request, const Arguments& arguments) {
    for (const std::string& text : arguments.all("--channel")) {
        const auto [name, uri] = parse_pair("--channel", text);
        const Json* before = request.find("InputDataConfig");
        Json channels = before ? *before : Json::array();
        channels.push(channel(name, uri));
        request.set("InputDataConfig", std::move(channels));
    }
}

}  // namespace

std::vector<OptionShape> job_request_options() {
    return {
        {.name = "--cli-input-json",
         .value = "<file>",
         .help = "The request as JSON, as for the AWS CLI; '-' reads standard input. Other options "
                 "change what it says."},
        {.name = "--name", .value = "<name>", .help = "The job's name."},
        {.name = "--image",
         .value = "<image>",
         .help = "gruca/llm-trainer, or gruca/host, which runs <command>."},
        {.name = "--instances", .value = "<count>", .help = "How many instances. Default: 1."},
        {.name = "--hyperparameter",
         .value = "<name=value>",
         .help = "May be given more than once.",
         .may_repeat = true},
        {.name = "--channel",
         .value = "<name=s3://...>",
         .help = "Input data below that prefix. May be given more than once.",
         .may_repeat = true},
        {.name = "--output", .value = "<s3://...>", .help = "Where the model goes."},
        {.name = "--checkpoint",
         .value = "<s3://...>",
         .help = "Where checkpoints go, and come from when there are some."},
        {.name = "--max-runtime",
         .value = "<duration>",
         .help = "The job is stopped after it. Default: 1d."},
        {.name = "--env",
         .value = "<name=value>",
         .help = "An environment variable. May be given more than once.",
         .may_repeat = true},
    };
}

Json job_request(const Arguments& arguments, std::istream& in) {
    const auto file = arguments.find("--cli-input-json");
    Json request = file ? read_request(*file, in) : default_request();
    if (const auto name = arguments.find("--name")) request.set("TrainingJobName", *name);
    set_algorithm(request, arguments);
    set_pairs(request, arguments, "--hyperparameter", "HyperParameters");
    set_pairs(request, arguments, "--env", "Environment");
    set_channels(request, arguments);
    if (const auto output = arguments.find("--output")) {
        change_member(request, "OutputDataConfig",
                      [&](Json& config) { config.set("S3OutputPath", *output); });
    }
    if (const auto checkpoint = arguments.find("--checkpoint")) {
        change_member(request, "CheckpointConfig",
                      [&](Json& config) { config.set("S3Uri", *checkpoint); });
    }
    if (const auto instances = arguments.find("--instances")) {
        const long long count = parse_count("--instances", *instances, 1);
        change_member(request, "ResourceConfig",
                      [&](Json& config) { config.set("InstanceCount", count); });
    }
    if (const auto runtime = arguments.find("--max-runtime")) {
        const auto limit = parse_duration(*runtime);
        change_member(request, "StoppingCondition",
                      [&](Json& config) { config.set("MaxRuntimeInSeconds", limit.count()); });
    }
    if (request.find("TrainingJobName") == nullptr) {
        throw Error(ErrorCode::invalid_argument, "a job needs a name: --name <name>");
    }
    return request;
}

}  // namespace gruca::cli
