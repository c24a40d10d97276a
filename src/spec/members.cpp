#include "spec/members.h"

#include "base/check.h"
#include "base/text.h"
#include "spec/train_job.h"

namespace gruca::spec {
namespace {

constexpr std::int64_t kIntMax = INT32_MAX;
constexpr std::int64_t kUnlimited = INT64_MAX;

constexpr std::string_view kAny = ".*";
constexpr std::string_view kSome = ".+";
constexpr std::string_view kS3Uri = "^(https|s3)://([^/]+)/?(.*)$";
constexpr std::string_view kKmsKey = "[a-zA-Z0-9:/_-]*";
constexpr std::string_view kTag = "^([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*)$";
constexpr std::string_view kInstanceTypes = "instance types";  // Filled in from their own list.

constexpr MemberRow structure(std::string_view path) {
    return {path, MemberKind::structure, 0, kUnlimited};
}
constexpr MemberRow list(std::string_view path, std::int64_t min, std::int64_t max) {
    return {path, MemberKind::list, min, max};
}
constexpr MemberRow map(std::string_view path, std::int64_t max) {
    return {path, MemberKind::map, 0, max};
}
constexpr MemberRow text(std::string_view path, std::int64_t min, std::int64_t max,
                         std::string_view pattern) {
    return {path, MemberKind::text, min, max, pattern};
}
constexpr MemberRow one_of(std::string_view path, std::string_view values) {
    return {path, MemberKind::text, 0, kUnlimited, {}, values};
}
constexpr MemberRow integer(std::string_view path, std::int64_t min, std::int64_t max) {
    return {path, MemberKind::integer, min, max};
}
constexpr MemberRow boolean(std::string_view path) {
    return {path, MemberKind::boolean, 0, 0};
}

constexpr std::string_view kNoKms = "nothing is encrypted with keys of a key service";
constexpr std::string_view kFileOnly = "only File mode; FastFile and Pipe come later";
constexpr std::string_view kNoDebugger = "there is no debugger or profiler that would act on it";
constexpr std::string_view kNoRules = "debugger and profiler rules are not evaluated";

constexpr MemberRow kRows[] = {
    text("TrainingJobName", 1, 63, "^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}").must(),
    map("HyperParameters", 100),
    text("HyperParameters{key}", 0, 256, kAny),
    text("HyperParameters{}", 0, 2500, kAny),

    structure("AlgorithmSpecification").must(),
    text("AlgorithmSpecification.TrainingImage", 0, 255, kAny),
    text("AlgorithmSpecification.AlgorithmName", 1, 170, {})
        .refused("there are no algorithm resources; name a TrainingImage"),
    one_of("AlgorithmSpecification.TrainingInputMode", "Pipe|File|FastFile")
        .must()
        .refused_unless("File", kFileOnly),
    list("AlgorithmSpecification.MetricDefinitions", 0, 40)
        .refused_unless("", "metrics are not read out of logs yet"),
    structure("AlgorithmSpecification.MetricDefinitions[]"),
    text("AlgorithmSpecification.MetricDefinitions[].Name", 1, 255, kSome).must(),
    text("AlgorithmSpecification.MetricDefinitions[].Regex", 1, 500, kSome).must(),
    boolean("AlgorithmSpecification.EnableSageMakerMetricsTimeSeries")
        .harmless("there is no metrics time series service to send to")
        .otherwise("false"),
    list("AlgorithmSpecification.ContainerEntrypoint", 1, 100),
    text("AlgorithmSpecification.ContainerEntrypoint[]", 0, 256, kAny),
    list("AlgorithmSpecification.ContainerArguments", 1, 100),
    text("AlgorithmSpecification.ContainerArguments[]", 0, 256, kAny),
    structure("AlgorithmSpecification.TrainingImageConfig")
        .refused("images are not pulled from registries"),

    text("RoleArn", 20, 2048, "^arn:aws[a-z\\-]*:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@\\-_/]+$")
        .must()
        .harmless("a job has temporary credentials of its own; no role is assumed"),

    list("InputDataConfig", 1, 20),
    structure("InputDataConfig[]"),
    text("InputDataConfig[].ChannelName", 1, 64, "[A-Za-z0-9\\.\\-_]+").must(),
    structure("InputDataConfig[].DataSource").must(),
    structure("InputDataConfig[].DataSource.S3DataSource"),
    one_of("InputDataConfig[].DataSource.S3DataSource.S3DataType",
           "ManifestFile|S3Prefix|AugmentedManifestFile|Converse")
        .must()
        .refused_unless("S3Prefix", "only S3Prefix; manifests come later"),
    text("InputDataConfig[].DataSource.S3DataSource.S3Uri", 0, 1024, kS3Uri).must(),
    one_of("InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType",
           "FullyReplicated|ShardedByS3Key")
        .otherwise("FullyReplicated"),
    list("InputDataConfig[].DataSource.S3DataSource.AttributeNames", 0, 16)
        .refused_unless("", "they belong to augmented manifests"),
    text("InputDataConfig[].DataSource.S3DataSource.AttributeNames[]", 1, 256, kSome),
    list("InputDataConfig[].DataSource.S3DataSource.InstanceGroupNames", 0, 5)
        .refused_unless("", "there are no instance groups"),
    text("InputDataConfig[].DataSource.S3DataSource.InstanceGroupNames[]", 1, 64, kSome),
    structure("InputDataConfig[].DataSource.S3DataSource.ModelAccessConfig")
        .harmless("the data is the user's own; there is no licence to accept"),
    boolean("InputDataConfig[].DataSource.S3DataSource.ModelAccessConfig.AcceptEula")
        .must()
        .harmless("the data is the user's own; there is no licence to accept"),
    structure("InputDataConfig[].DataSource.S3DataSource.HubAccessConfig")
        .refused("there is no model hub"),
    structure("InputDataConfig[].DataSource.FileSystemDataSource")
        .refused("file systems are not mounted; use S3DataSource"),
    structure("InputDataConfig[].DataSource.DatasetSource")
        .refused("there are no dataset resources; use S3DataSource"),
    text("InputDataConfig[].ContentType", 0, 256, kAny),
    one_of("InputDataConfig[].CompressionType", "None|Gzip")
        .refused_unless("None", "only Pipe mode unpacks its input, and it comes later")
        .otherwise("None"),
    one_of("InputDataConfig[].RecordWrapperType", "None|RecordIO")
        .refused_unless("None", "only Pipe mode wraps records, and it comes later")
        .otherwise("None"),
    one_of("InputDataConfig[].InputMode", "Pipe|File|FastFile").refused_unless("File", kFileOnly),
    structure("InputDataConfig[].ShuffleConfig").refused("input is not shuffled on its way in"),

    structure("OutputDataConfig").must(),
    text("OutputDataConfig.KmsKeyId", 0, 2048, kKmsKey).refused_unless("", kNoKms).otherwise(""),
    text("OutputDataConfig.S3OutputPath", 0, 1024, kS3Uri).must(),
    one_of("OutputDataConfig.CompressionType", "GZIP|NONE").otherwise("GZIP"),

    structure("ResourceConfig").must(),
    one_of("ResourceConfig.InstanceType", kInstanceTypes).must(),
    integer("ResourceConfig.InstanceCount", 1, kIntMax).must(),
    integer("ResourceConfig.VolumeSizeInGB", 0, kIntMax)
        .harmless("a job writes to the machine's own disk"),
    text("ResourceConfig.VolumeKmsKeyId", 0, 2048, kKmsKey).refused_unless("", kNoKms),
    integer("ResourceConfig.KeepAlivePeriodInSeconds", 0, 21600)
        .refused_unless("0", "there are no warm pools yet"),
    list("ResourceConfig.InstanceGroups", 0, 5)
        .refused_unless("", "a job's instances are all alike"),
    text("ResourceConfig.TrainingPlanArn", 50, 2048,
         "arn:aws[a-z\\-]*:sagemaker:[a-z0-9\\-]*:[0-9]{12}:training-plan/.*")
        .refused("there are no training plans"),
    structure("ResourceConfig.InstancePlacementConfig").refused("there are no UltraServers"),

    structure("VpcConfig").refused("jobs run on this machine, not in a cloud"),

    structure("StoppingCondition"),
    integer("StoppingCondition.MaxRuntimeInSeconds", 1, 28 * 86400).otherwise("86400"),
    integer("StoppingCondition.MaxWaitTimeInSeconds", 1, kIntMax)
        .refused("it belongs to managed spot training"),
    integer("StoppingCondition.MaxPendingTimeInSeconds", 7200, 2419200)
        .refused("a queued job waits until it runs or is stopped"),

    list("Tags", 0, 50),
    structure("Tags[]"),
    text("Tags[].Key", 1, 128, kTag).must(),
    text("Tags[].Value", 0, 256, kTag).must(),

    boolean("EnableNetworkIsolation").otherwise("false"),
    boolean("EnableInterContainerTrafficEncryption")
        .refused_unless("false", "traffic between instances is not encrypted")
        .otherwise("false"),
    boolean("EnableManagedSpotTraining")
        .refused_unless("false", "no job is interrupted for another")
        .otherwise("false"),
    structure("CheckpointConfig"),
    text("CheckpointConfig.S3Uri", 0, 1024, kS3Uri).must(),
    text("CheckpointConfig.LocalPath", 0, 4096, kAny).otherwise("/opt/ml/checkpoints"),

    structure("DebugHookConfig").harmless(kNoDebugger),
    text("DebugHookConfig.LocalPath", 0, 4096, kAny).harmless(kNoDebugger),
    text("DebugHookConfig.S3OutputPath", 0, 1024, kS3Uri).must().harmless(kNoDebugger),
    map("DebugHookConfig.HookParameters", 20).harmless(kNoDebugger),
    text("DebugHookConfig.HookParameters{key}", 1, 256, kAny).harmless(kNoDebugger),
    text("DebugHookConfig.HookParameters{}", 0, 256, kAny).harmless(kNoDebugger),
    list("DebugHookConfig.CollectionConfigurations", 0, 20).harmless(kNoDebugger),
    structure("DebugHookConfig.CollectionConfigurations[]").harmless(kNoDebugger),
    text("DebugHookConfig.CollectionConfigurations[].CollectionName", 1, 256, kAny)
        .harmless(kNoDebugger),
    map("DebugHookConfig.CollectionConfigurations[].CollectionParameters", 20)
        .harmless(kNoDebugger),
    text("DebugHookConfig.CollectionConfigurations[].CollectionParameters{key}", 1, 256, kAny)
        .harmless(kNoDebugger),
    text("DebugHookConfig.CollectionConfigurations[].CollectionParameters{}", 0, 256, kAny)
        .harmless(kNoDebugger),
    list("DebugRuleConfigurations", 0, 20).refused_unless("", kNoRules),
    structure("TensorBoardOutputConfig").refused("event files are not copied while a job runs"),
    structure("ExperimentConfig").refused("there are no experiments"),
    structure("ProfilerConfig").harmless(kNoDebugger),
    text("ProfilerConfig.S3OutputPath", 0, 1024, kS3Uri).harmless(kNoDebugger),
    integer("ProfilerConfig.ProfilingIntervalInMilliseconds", INT64_MIN, kUnlimited)
        .harmless(kNoDebugger),
    map("ProfilerConfig.ProfilingParameters", 20).harmless(kNoDebugger),
    text("ProfilerConfig.ProfilingParameters{key}", 1, 256, kAny).harmless(kNoDebugger),
    text("ProfilerConfig.ProfilingParameters{}", 0, 256, kAny).harmless(kNoDebugger),
    boolean("ProfilerConfig.DisableProfiler").harmless(kNoDebugger),
    list("ProfilerRuleConfigurations", 0, 20).refused_unless("", kNoRules),

    map("Environment", 100),
    text("Environment{key}", 0, 512, "[a-zA-Z_][a-zA-Z0-9_]*"),
    text("Environment{}", 0, 512, "[\\S\\s]*"),

    structure("RetryStrategy").refused("a failed job is not started again by itself"),
    structure("RemoteDebugConfig"),
    boolean("RemoteDebugConfig.EnableRemoteDebug")
        .refused_unless("false", "there is no session into a running job"),
    structure("InfraCheckConfig").harmless("there is one machine, and it is up"),
    boolean("InfraCheckConfig.EnableInfraCheck").harmless("there is one machine, and it is up"),
    structure("SessionChainingConfig"),
    boolean("SessionChainingConfig.EnableSessionTagChaining")
        .refused_unless("false", "no role is assumed that could carry session tags"),
    structure("ServerlessJobConfig").refused("there is no managed model customization"),
    structure("MlflowConfig").refused("there is no MLflow server"),
    structure("ModelPackageConfig").refused("there is no model registry"),
};

std::vector<std::string> values_of(const MemberRow& row) {
    if (row.values.empty()) return {};
    return row.values == kInstanceTypes ? training_instance_types() : split(row.values, '|');
}

// The parts of a path: "A[].B" is "A", "[]", "B".
std::vector<std::string> parts_of(std::string_view path) {
    std::vector<std::string> parts;
    for (const std::string& dotted : split(path, '.')) {
        const std::size_t suffix = dotted.find_first_of("[{");
        parts.push_back(dotted.substr(0, suffix));
        if (suffix != std::string::npos) parts.push_back(dotted.substr(suffix));
    }
    return parts;
}

Member* below(const Member& parent, std::string_view name) {
    for (const auto& member : parent.members) {
        if (member->name == name) return member.get();
    }
    return nullptr;
}

Member build() {
    Member root;
    for (const MemberRow& row : kRows) {
        Member* at = &root;
        std::vector<std::string> parts = parts_of(row.path);
        const std::string name = parts.back();
        parts.pop_back();
        for (const std::string& part : parts) {
            at = below(*at, part);
            CHECK(at != nullptr, "row stands before the row it belongs to: {}", row.path);
        }
        auto member = std::make_unique<Member>();
        member->row = &row;
        member->name = name;
        member->values = values_of(row);
        if (!row.pattern.empty()) member->pattern = std::make_unique<Pattern>(row.pattern);
        at->members.push_back(std::move(member));
    }
    return root;
}

}  // namespace

const Member* Member::find(std::string_view member) const {
    return below(*this, member);
}

std::span<const MemberRow> create_training_job_rows() {
    return kRows;
}

const Member& create_training_job_members() {
    static const Member root = build();
    return root;
}

}  // namespace gruca::spec
