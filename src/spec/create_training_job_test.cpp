// CreateTrainingJob: what is accepted, what Describe will show of it, and for every constraint of
// the table a request that breaks it and the text that says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "spec/members.h"
#include "spec/train_job.h"
#include "spec/violations.h"

namespace gruca::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const AccountFacts kAccount{.region = "us-east-1", .account = "123456789012"};

Json minimal_request() {
    return Json::parse(R"({
        "TrainingJobName": "llm-1",
        "AlgorithmSpecification": {"TrainingImage": "gruca/llm-trainer",
                                   "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::123456789012:role/train",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out/"},
        "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 1}})");
}

// Every member that has a harmless value, with it.
Json full_request() {
    return Json::parse(R"({
        "TrainingJobName": "llm-1",
        "HyperParameters": {"lr": "0.1"},
        "AlgorithmSpecification": {
            "TrainingImage": "gruca/host", "TrainingInputMode": "File", "MetricDefinitions": [],
            "EnableSageMakerMetricsTimeSeries": true,
            "ContainerEntrypoint": ["/bin/sh", "-c"], "ContainerArguments": ["echo hi"]},
        "RoleArn": "arn:aws:iam::123456789012:role/train",
        "InputDataConfig": [{
            "ChannelName": "train",
            "DataSource": {"S3DataSource": {
                "S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data",
                "S3DataDistributionType": "ShardedByS3Key", "AttributeNames": [],
                "InstanceGroupNames": [], "ModelAccessConfig": {"AcceptEula": true}}},
            "ContentType": "text/plain", "CompressionType": "None", "RecordWrapperType": "None",
            "InputMode": "File"}],
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out", "KmsKeyId": "",
                             "CompressionType": "NONE"},
        "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2,
                           "VolumeSizeInGB": 30, "VolumeKmsKeyId": "",
                           "KeepAlivePeriodInSeconds": 0, "InstanceGroups": []},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
        "Tags": [{"Key": "team", "Value": ""}],
        "EnableNetworkIsolation": false, "EnableInterContainerTrafficEncryption": false,
        "EnableManagedSpotTraining": false,
        "CheckpointConfig": {"S3Uri": "s3://bucket/ck", "LocalPath": "/opt/ml/ck/"},
        "DebugHookConfig": {"S3OutputPath": "s3://bucket/d", "LocalPath": "/opt/ml/t",
            "HookParameters": {"a": "b"},
            "CollectionConfigurations": [{"CollectionName": "c",
                                          "CollectionParameters": {"a": "b"}}]},
        "DebugRuleConfigurations": [],
        "ProfilerConfig": {"S3OutputPath": "s3://bucket/p", "ProfilingIntervalInMilliseconds": 500,
                           "ProfilingParameters": {"a": "b"}, "DisableProfiler": false},
        "ProfilerRuleConfigurations": [],
        "Environment": {"A_1": "two\nlines"},
        "RemoteDebugConfig": {"EnableRemoteDebug": false},
        "InfraCheckConfig": {"EnableInfraCheck": true},
        "SessionChainingConfig": {"EnableSessionTagChaining": false}})");
}

// "A.B[].C" as the parts A, B, [], C.
std::vector<std::string> parts_of(std::string_view path) {
    std::vector<std::string> parts;
    for (const std::string& dotted : split(path, '.')) {
        const std::size_t suffix = dotted.find_first_of("[{");
        parts.push_back(dotted.substr(0, suffix));
        if (suffix != std::string::npos) parts.push_back(dotted.substr(suffix));
    }
    return parts;
}

Json& member_of(Json& json, const std::string& name) {
    if (json.find(name) == nullptr) return json.set(name, Json::object());
    for (auto& [key, value] : json.as_object()) {
        if (key == name) return value;
    }
    throw std::logic_error("unreachable");
}

// The request with the member at `path` replaced; a null value removes it.
Json with(Json request, std::string_view path, const Json& value) {
    Json* at = &request;
    std::vector<std::string> parts = parts_of(path);
    const std::string last = parts.back();
    parts.pop_back();
    for (const std::string& part : parts) {
        if (part == "[]" && at->as_array().empty()) at->push(Json::object());
        at = part == "[]" ? &at->as_array().at(0) : &member_of(*at, part);
    }
    if (last == "[]") {
        *at = Json::array({value});
    } else if (last == "{key}") {
        *at = Json::object({{value.as_string(), "v"}});
    } else if (last == "{}") {
        *at = Json::object({{"k", value}});
    } else {
        at->set(last, value);
    }
    return request;
}

// "A.B[].C" as the API writes it: "a.b.1.member.c"; entries of a map are told at the map.
std::string api_path(std::string_view path) {
    std::string text;
    for (const std::string& part : parts_of(path)) {
        if (part.starts_with("{")) continue;
        text += (text.empty() ? "" : ".") + (part == "[]" ? "1.member" : lower_camel(part));
    }
    return text;
}

std::string refusal(const Json& request) {
    try {
        decode_create_training_job(request, kAccount);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        return error.message();
    }
    return "nothing was refused";
}

void expect_refused(std::string_view path, const Json& bad, const std::string& constraint) {
    const std::string message = refusal(with(full_request(), path, bad));
    EXPECT_THAT(message,
                HasSubstr(fmt::format("at '{}' failed to satisfy constraint: ", api_path(path))))
        << path;
    EXPECT_THAT(message, HasSubstr(constraint)) << path;
}

TEST(CreateTrainingJob, the_minimum_is_accepted_and_shown_with_its_defaults) {
    const TrainJob job = decode_create_training_job(minimal_request(), kAccount);
    EXPECT_EQ(job.arn, "arn:aws:sagemaker:us-east-1:123456789012:training-job/llm-1");
    EXPECT_EQ(job.output_path, "s3://bucket/out");
    EXPECT_EQ(job.artifacts_uri(), "s3://bucket/out/llm-1/output/model.tar.gz");
    EXPECT_EQ(job.max_runtime_s, 86400);
    EXPECT_FALSE(job.checkpoint);
    EXPECT_EQ(job.echo, Json::parse(R"({
        "TrainingJobName": "llm-1",
        "AlgorithmSpecification": {"TrainingImage": "gruca/llm-trainer",
            "TrainingInputMode": "File", "EnableSageMakerMetricsTimeSeries": false},
        "RoleArn": "arn:aws:iam::123456789012:role/train",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out/", "KmsKeyId": "",
                             "CompressionType": "GZIP"},
        "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        "EnableNetworkIsolation": false, "EnableInterContainerTrafficEncryption": false,
        "EnableManagedSpotTraining": false})"));
}

TEST(CreateTrainingJob, everything_harmless_at_once_is_accepted_and_echoed) {
    const TrainJob job = decode_create_training_job(full_request(), kAccount);
    EXPECT_THAT(job.entrypoint, ElementsAre("/bin/sh", "-c"));
    EXPECT_THAT(job.arguments, ElementsAre("echo hi"));
    ASSERT_EQ(job.channels.size(), 1u);
    EXPECT_EQ(job.channels[0].distribution, "ShardedByS3Key");
    EXPECT_EQ(job.channels[0].input_mode, "File");
    EXPECT_EQ(job.checkpoint->local_path, "/opt/ml/ck");
    EXPECT_EQ(job.artifacts_uri(), "s3://bucket/out/llm-1/output/model/");
    EXPECT_EQ(job.max_runtime_s, 60);
    EXPECT_EQ(job.environment.at("A_1").as_string(), "two\nlines");
    const Json request = full_request();
    for (const auto& [name, value] : request.as_object()) {
        if (name == "Tags" || name == "SessionChainingConfig") {
            EXPECT_EQ(job.echo.find(name), nullptr) << name;
        } else {
            EXPECT_EQ(job.echo.at(name), value) << name;
        }
    }
}

TEST(CreateTrainingJob, defaults_of_a_channel_are_filled_in) {
    Json request = with(minimal_request(), "InputDataConfig", Json::parse(R"([{
        "ChannelName": "train", "ContentType": null, "DataSource": {"S3DataSource": {
            "S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data"}}}])"));
    request = with(request, "CheckpointConfig", Json::object({{"S3Uri", "s3://bucket/ck"}}));
    const TrainJob job = decode_create_training_job(request, kAccount);
    EXPECT_EQ(job.echo.at("InputDataConfig"), Json::parse(R"([{
        "ChannelName": "train", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix",
            "S3Uri": "s3://bucket/data", "S3DataDistributionType": "FullyReplicated"}},
        "CompressionType": "None", "RecordWrapperType": "None"}])"));
    EXPECT_EQ(job.echo.at("CheckpointConfig").at("LocalPath").as_string(), "/opt/ml/checkpoints");
    EXPECT_EQ(job.checkpoint->local_path, "/opt/ml/checkpoints");
}

TEST(CreateTrainingJob, what_the_python_sdk_sends_of_its_own_accord_is_accepted) {
    const TrainJob job = decode_create_training_job(Json::parse(R"({
        "AlgorithmSpecification": {"TrainingInputMode": "File", "TrainingImage": "gruca/host",
            "ContainerEntrypoint": ["python3", "train.py"],
            "EnableSageMakerMetricsTimeSeries": true},
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/"},
        "TrainingJobName": "pytorch-2026-01-01-00-00-00-123",
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        "ResourceConfig": {"VolumeSizeInGB": 30, "InstanceCount": 2,
                           "InstanceType": "ml.g5.xlarge"},
        "RoleArn": "arn:aws:iam::123456789012:role/train",
        "InputDataConfig": [{"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix",
            "S3Uri": "s3://bucket/data", "S3DataDistributionType": "FullyReplicated"}},
            "ChannelName": "training"}],
        "HyperParameters": {"sagemaker_program": "\"train.py\"", "sagemaker_region": "\"x\""},
        "Tags": [{"Key": "owner:team", "Value": "a@b.c"}],
        "DebugHookConfig": {"S3OutputPath": "s3://bucket/", "CollectionConfigurations": []},
        "ProfilerConfig": {"S3OutputPath": "s3://bucket/", "DisableProfiler": false}})"),
                                                    kAccount);
    EXPECT_EQ(job.output_path, "s3://bucket");
    EXPECT_EQ(job.hyperparameters.at("sagemaker_program").as_string(), "\"train.py\"");
}

TEST(CreateTrainingJob, texts_are_those_of_the_api) {
    EXPECT_EQ(refusal(with(minimal_request(), "TrainingJobName", "my_job")),
              "1 validation error detected: Value 'my_job' at 'trainingJobName' failed to satisfy "
              "constraint: Member must satisfy regular expression pattern: "
              "^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}");
    EXPECT_EQ(refusal(with(full_request(), "InputDataConfig[].InputMode", "fastfile")),
              "1 validation error detected: Value 'fastfile' at "
              "'inputDataConfig.1.member.inputMode' failed to satisfy constraint: Member must "
              "satisfy enum value set: [Pipe, File, FastFile]");
    EXPECT_EQ(refusal(with(minimal_request(), "ResourceConfig", Json())),
              "1 validation error detected: Value null at 'resourceConfig' failed to satisfy "
              "constraint: Member must not be null");
    EXPECT_EQ(refusal(with(minimal_request(), "StoppingCondition.MaxRuntimeInSeconds", 0)),
              "1 validation error detected: Value '0' at 'stoppingCondition.maxRuntimeInSeconds' "
              "failed to satisfy constraint: Member must have value greater than or equal to 1");
    EXPECT_EQ(refusal(with(minimal_request(), "Environment", Json::object({{"1a", "v"}}))),
              "1 validation error detected: Value '{1a=v}' at 'environment' failed to satisfy "
              "constraint: Map keys must satisfy constraint: [Member must satisfy regular "
              "expression pattern: [a-zA-Z_][a-zA-Z0-9_]*]");
    EXPECT_EQ(refusal(with(minimal_request(), "EnableManagedSpotTraining", true)),
              "1 validation error detected: Value 'true' at 'enableManagedSpotTraining' failed to "
              "satisfy constraint: EnableManagedSpotTraining is not supported by gruca: no job is "
              "interrupted for another");
}

TEST(CreateTrainingJob, all_violations_are_told_at_once) {
    Json request = with(minimal_request(), "TrainingJobName", std::string(64, 'a') + "_");
    request = with(request, "RoleArn", Json());
    request = with(request, "EnableManagedSpotTraining", true);
    const std::string message = refusal(request);
    EXPECT_THAT(message, StartsWith("3 validation errors detected: Value 'aaaa"));
    EXPECT_THAT(message, HasSubstr("Member must have length less than or equal to 63; Value null "
                                   "at 'roleArn' failed to satisfy constraint: Member must not be "
                                   "null; Value 'true' at 'enableManagedSpotTraining'"));
}

TEST(CreateTrainingJob, what_must_be_there_is_missed) {
    for (const MemberRow& row : create_training_job_rows()) {
        if (row.required) expect_refused(row.path, Json(), "Member must not be null");
    }
}

TEST(CreateTrainingJob, values_of_another_kind_are_refused) {
    for (const MemberRow& row : create_training_job_rows()) {
        const bool takes_text = row.kind == MemberKind::text;
        if (row.path.ends_with("{key}")) continue;  // Always text in JSON.
        expect_refused(row.path, takes_text ? Json(5) : Json("five"),
                       row.path.ends_with("{}") ? "Member must be a string" : "Member must be a");
    }
}

TEST(CreateTrainingJob, every_limit_of_a_text_is_held) {
    for (const MemberRow& row : create_training_job_rows()) {
        if (row.kind != MemberKind::text) continue;
        if (!row.values.empty()) {
            expect_refused(row.path, "nonsense", "Member must satisfy enum value set: [");
            continue;
        }
        const auto max = static_cast<std::size_t>(row.max);
        const auto min = static_cast<std::size_t>(row.min);
        expect_refused(row.path, std::string(max + 1, 'a'),
                       fmt::format("Member must have length less than or equal to {}", max));
        if (min > 0) {
            expect_refused(row.path, std::string(min - 1, 'a'),
                           fmt::format("Member must have length greater than or equal to {}", min));
        }
        if (row.pattern.empty() || row.pattern == "[\\S\\s]*") continue;
        expect_refused(
            row.path, std::string(std::max<std::size_t>(min, 1), '\n'),
            fmt::format("Member must satisfy regular expression pattern: {}", row.pattern));
    }
}

TEST(CreateTrainingJob, every_limit_of_a_number_or_a_size_is_held) {
    const auto text = [](const char* measure, const char* relation, std::int64_t limit) {
        return fmt::format("Member must have {} {} than or equal to {}", measure, relation, limit);
    };
    for (const MemberRow& row : create_training_job_rows()) {
        if (row.kind == MemberKind::integer && row.max < INT64_MAX) {
            expect_refused(row.path, row.max + 1, text("value", "less", row.max));
            expect_refused(row.path, row.min - 1, text("value", "greater", row.min));
        }
        Json many;
        for (std::int64_t i = 0; i <= row.max && i <= 200; ++i) {
            if (row.kind == MemberKind::list) many.push("item");
            if (row.kind == MemberKind::map) many.set(fmt::format("k{}", i), "v");
        }
        if (many.is_null()) continue;
        expect_refused(row.path, many, text("length", "less", row.max));
        if (row.min > 0)
            expect_refused(row.path, Json::array(), text("length", "greater", row.min));
    }
}

Json something_asked_for(const MemberRow& row) {
    if (row.kind == MemberKind::structure) return Json::object();
    if (row.kind == MemberKind::list) return Json::array({"item"});
    if (row.kind == MemberKind::boolean) return true;
    if (row.kind == MemberKind::integer) return 7200;
    if (row.values.empty()) return "a-name";
    for (const std::string& value : split(row.values, '|')) {
        if (value != row.accepted) return value;
    }
    return Json();
}

TEST(CreateTrainingJob, behaviour_that_is_absent_is_refused_by_name) {
    int refused = 0;
    for (const MemberRow& row : create_training_job_rows()) {
        if (row.support != Support::refused) continue;
        ++refused;
        const std::string name = parts_of(row.path).back();
        expect_refused(row.path, something_asked_for(row), name + " ");
        expect_refused(row.path, something_asked_for(row), "is not supported by gruca: ");
        EXPECT_FALSE(row.why.empty()) << row.path;
    }
    EXPECT_GT(refused, 30);
}

TEST(CreateTrainingJob, every_other_value_of_a_mode_is_refused_by_name) {
    for (const char* mode : {"Pipe", "FastFile"}) {
        const std::string text = std::string("is not supported by gruca: only File mode");
        expect_refused("AlgorithmSpecification.TrainingInputMode", mode, text);
        expect_refused("InputDataConfig[].InputMode", mode, text);
    }
    for (const char* type : {"ManifestFile", "AugmentedManifestFile", "Converse"}) {
        expect_refused("InputDataConfig[].DataSource.S3DataSource.S3DataType", type, type);
    }
}

TEST(CreateTrainingJob, an_unknown_member_is_refused_and_the_nearest_named) {
    expect_refused("Enviroment", Json::object(), "did you mean Environment?");
    expect_refused("ResourceConfig.InstanceTypo", "x", "did you mean InstanceType?");
    EXPECT_EQ(refusal(with(minimal_request(), "Novelty", Json())), "nothing was refused");
}

TEST(CreateTrainingJob, members_are_held_against_each_other) {
    const std::string image = "AlgorithmSpecification.TrainingImage";
    const std::string entrypoint = "AlgorithmSpecification.ContainerEntrypoint";
    expect_refused(image, Json(), "exactly one of TrainingImage and AlgorithmName");
    expect_refused(image, "pytorch:2", "other images are not supported by gruca yet");
    expect_refused(image, "gruca/host:1", "other images are not supported by gruca yet");
    expect_refused(entrypoint, Json(), "Member must not be null with the image gruca/host");
    expect_refused(entrypoint, Json::array({""}), "The first item must name a program");
    EXPECT_THAT(refusal(with(minimal_request(), entrypoint, Json::array({"/bin/sh"}))),
                HasSubstr("Member must be null with the image gruca/llm-trainer"));

    expect_refused("OutputDataConfig.S3OutputPath", "https://h/b", "must start with s3://");
    expect_refused("OutputDataConfig.S3OutputPath", "s3://../x", "must name a valid bucket");
    expect_refused("CheckpointConfig.S3Uri", "https://h/b", "must start with s3://");
    expect_refused("InputDataConfig[].DataSource.S3DataSource.S3Uri", "s3://b ucket",
                   "must name a valid bucket");
    expect_refused("InputDataConfig[].DataSource.S3DataSource", Json(), "must not be null");
    expect_refused("InputDataConfig[].ChannelName", "..", "able to name a directory");
    expect_refused("ProfilerConfig.ProfilingIntervalInMilliseconds", 7, "one of 100, 200, 500");

    Json twice = full_request().at("InputDataConfig");
    twice.push(twice.as_array()[0]);
    EXPECT_THAT(refusal(with(full_request(), "InputDataConfig", twice)),
                HasSubstr("at 'inputDataConfig.2.member.channelName' failed to satisfy constraint: "
                          "Channel names must be unique"));
}

TEST(CreateTrainingJob, checkpoints_stay_out_of_the_platforms_directories) {
    const auto refused = [](const std::string& path) {
        return refusal(with(full_request(), "CheckpointConfig.LocalPath", path));
    };
    for (const char* path : {"", "ck", "/", "//", "/a/../b", "/a//b", "/./a"}) {
        EXPECT_THAT(refused(path), HasSubstr("at 'checkpointConfig.localPath'")) << path;
    }
    for (const char* path : {"/opt/ml/input", "/opt/ml/input/data", "/opt/ml/model/", "/opt/ml",
                             "/opt", "/opt/ml/output/data/x", "/proc", "/dev/x", "/etc", "/usr"}) {
        EXPECT_THAT(refused(path), HasSubstr("belongs to the platform")) << path;
    }
    for (const char* path : {"/ck", "/ck/"}) {
        EXPECT_THAT(refused(path), HasSubstr("deeper than directly below /")) << path;
    }
    for (const char* path : {"/opt/ml/checkpoints/", "/opt/ml/modelling", "/opt/ml/a.b"}) {
        EXPECT_EQ(refused(path), "nothing was refused") << path;
    }
}

TEST(CreateTrainingJob, a_huge_request_gives_a_bounded_message) {
    Json map = Json::object();
    for (int i = 0; i < 1000; ++i) map.set(fmt::format("{}", i), std::string(5000, 'x'));
    const std::string message = refusal(with(minimal_request(), "Environment", map));
    EXPECT_THAT(message, StartsWith("2001 validation errors detected: "));
    EXPECT_THAT(message, testing::EndsWith("; …"));
    EXPECT_LT(message.size(), 200'000u);
    EXPECT_LT(refusal(with(minimal_request(), std::string(1'000'000, 'A'), 1)).size(), 5'000u);
    EXPECT_LT(refusal(with(minimal_request(), "TrainingJobName", map)).size(), 5'000u);
}

TEST(Tags, are_checked_and_kept_in_order) {
    const Json tags = Json::parse(R"([{"Key":"b","Value":"1"},{"Key":"a","Value":""}])");
    EXPECT_THAT(decode_tags(tags, "tags"),
                ElementsAre(testing::Pair("b", "1"), testing::Pair("a", "")));
    EXPECT_TRUE(decode_tags(Json(), "tags").empty());
    const auto refused = [](const char* json) {
        try {
            decode_tags(Json::parse(json), "tags");
        } catch (const Error& error) {
            return error.message();
        }
        return std::string();
    };
    EXPECT_THAT(refused(R"([{"Key":"a","Value":"1"},{"Key":"a","Value":"2"}])"),
                HasSubstr("at 'tags.2.member.key'"));
    EXPECT_THAT(refused(R"([{"Key":"AWS:x","Value":"1"}])"), HasSubstr("reserved"));
    EXPECT_THAT(refused(R"([{"Key":"a!","Value":"1"}])"), HasSubstr("'tags.1.member.key'"));
    EXPECT_THAT(refused(R"({"Key":"a"})"), HasSubstr("Member must be a list"));
}

TEST(Members, every_harmless_one_has_its_reason) {
    std::vector<std::string> paths;
    for (const HarmlessMember& member : harmless_members()) {
        EXPECT_STRNE(member.reason, "") << member.path;
        paths.emplace_back(member.path);
    }
    EXPECT_THAT(paths,
                testing::IsSupersetOf({"DebugHookConfig", "ProfilerConfig", "RoleArn",
                                       "InfraCheckConfig", "ResourceConfig.VolumeSizeInGB"}));
}

TEST(Members, the_reference_page_is_the_table) {
    const std::string path = GRUCA_SOURCE_DIR "/docs/reference/create-training-job.md";
    const std::string page = create_training_job_page();
    if (std::getenv("GRUCA_WRITE_DOCS")) write_file_atomic(path, page);
    EXPECT_EQ(read_file(path), page) << "write it anew: ./dev docs";
}

TEST(Members, the_instance_types_are_those_of_the_api) {
    EXPECT_EQ(training_instance_types().size(), 151u);
    EXPECT_THAT(training_instance_types(),
                testing::IsSupersetOf({"ml.p5.48xlarge", "ml.t3.medium", "ml.p6e-gb200.36xlarge"}));
}

}  // namespace
}  // namespace gruca::spec
