// The request of CreateTrainingJob, decoded: first every member by itself, from the table; then
// what members mean together.

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "spec/members.h"
#include "spec/rules.h"
#include "spec/train_job.h"
#include "spec/violations.h"

namespace gruca::spec {
namespace {

// The value as Describe shows it: without nulls, with defaults for members not given.
Json echo_of(const Member& member, const Json& value) {
    if (member.kind() == MemberKind::list) {
        Json list = Json::array();
        const Member* items = member.find("[]");
        for (const Json& item : value.as_array()) list.push(items ? echo_of(*items, item) : item);
        return list;
    }
    if (member.kind() != MemberKind::structure) return value;
    Json structure = Json::object();
    for (const auto& [name, item] : value.as_object()) {
        const Member* known = member.find(name);
        if (known && !item.is_null()) structure.set(name, echo_of(*known, item));
    }
    for (const auto& part : member.members) {
        const std::string_view otherwise = part->row->by_default;
        if (structure.find(part->name)) continue;
        if (part->kind() == MemberKind::text && otherwise.data() != nullptr) {
            structure.set(part->name, otherwise);
        } else if (!otherwise.empty()) {
            structure.set(part->name, Json::parse(otherwise));
        }
    }
    return structure;
}

Json echo_of_request(const Json& request) {
    const Member& root = create_training_job_members();
    Json all = request;
    if (all.find("StoppingCondition") == nullptr) all.set("StoppingCondition", Json::object());
    const Json whole = echo_of(root, all);
    Json echo = Json::object();
    for (const auto& [name, value] : whole.as_object()) {
        if (name != "Tags" && name != "SessionChainingConfig") echo.set(name, value);
    }
    return echo;
}

std::vector<std::string> texts_of(const Json& structure, std::string_view name) {
    std::vector<std::string> texts;
    if (const Json* list = structure.find(name)) {
        for (const Json& item : list->as_array()) texts.push_back(item.as_string());
    }
    return texts;
}

TaskChannel channel_of(const Json& channel, const std::string& default_mode) {
    const Json& s3 = channel.at("DataSource").at("S3DataSource");
    return {.name = channel.at("ChannelName").as_string(),
            .s3_uri = s3.at("S3Uri").as_string(),
            .input_mode = channel.get_string("InputMode", default_mode),
            .distribution = s3.at("S3DataDistributionType").as_string(),
            .content_type = channel.get_string("ContentType"),
            .record_wrapper = channel.at("RecordWrapperType").as_string()};
}

// From the echo, where every default is filled in.
TrainJob job_of(const Json& echo, const AccountFacts& account) {
    TrainJob job;
    job.name = echo.at("TrainingJobName").as_string();
    job.arn = fmt::format("arn:aws:sagemaker:{}:{}:training-job/{}", account.region,
                          account.account, job.name);
    const Json& algorithm = echo.at("AlgorithmSpecification");
    job.image = algorithm.at("TrainingImage").as_string();
    job.entrypoint = texts_of(algorithm, "ContainerEntrypoint");
    job.arguments = texts_of(algorithm, "ContainerArguments");
    const std::string mode = algorithm.at("TrainingInputMode").as_string();
    if (const Json* channels = echo.find("InputDataConfig")) {
        for (const Json& channel : channels->as_array()) {
            job.channels.push_back(channel_of(channel, mode));
        }
    }
    if (const Json* given = echo.find("HyperParameters")) job.hyperparameters = *given;
    if (const Json* given = echo.find("Environment")) job.environment = *given;
    const Json& output = echo.at("OutputDataConfig");
    job.output_path = without_trailing_slashes(output.at("S3OutputPath").as_string());
    job.compress_output = output.at("CompressionType").as_string() == "GZIP";
    if (const Json* config = echo.find("CheckpointConfig")) {
        job.checkpoint = TaskCheckpoint{
            .s3_uri = config->at("S3Uri").as_string(),
            .local_path = without_trailing_slashes(config->at("LocalPath").as_string())};
    }
    const Json& resources = echo.at("ResourceConfig");
    job.instance_type = resources.at("InstanceType").as_string();
    job.instance_count = static_cast<int>(resources.at("InstanceCount").as_int());
    job.max_runtime_s = echo.at("StoppingCondition").at("MaxRuntimeInSeconds").as_int();
    job.isolated = echo.get_bool("EnableNetworkIsolation");
    job.echo = echo;
    return job;
}

}  // namespace

TrainJob decode_create_training_job(const Json& request, const AccountFacts& account) {
    if (!request.is_object()) {
        throw Error(ErrorCode::invalid_argument, "the body must be a JSON object");
    }
    Violations violations;
    check_members(create_training_job_members(), request, "", violations);
    violations.throw_if_any();
    // Everything has its kind now, so the rules below may read it.
    check_together(request, violations);
    violations.throw_if_any();
    return job_of(echo_of_request(request), account);
}

std::vector<std::pair<std::string, std::string>> decode_tags(const Json& tags,
                                                             std::string_view path) {
    if (tags.is_null()) return {};
    const Member* member = create_training_job_members().find("Tags");
    CHECK(member != nullptr, "the table has no Tags");
    Violations violations;
    check_member(*member, tags, std::string(path), violations);
    violations.throw_if_any();
    check_tags_together(tags, path, violations);
    violations.throw_if_any();
    std::vector<std::pair<std::string, std::string>> decoded;
    for (const Json& tag : tags.as_array()) {
        decoded.emplace_back(tag.at("Key").as_string(), tag.at("Value").as_string());
    }
    return decoded;
}

const std::vector<HarmlessMember>& harmless_members() {
    static const std::vector<HarmlessMember> members = [] {
        std::vector<HarmlessMember> found;
        for (const MemberRow& row : create_training_job_rows()) {
            // Rows are literals, so their texts end with a zero.
            if (row.support == Support::harmless)
                found.push_back({row.path.data(), row.why.data()});
        }
        return found;
    }();
    return members;
}

}  // namespace gruca::spec
