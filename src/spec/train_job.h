// spec/train_job.h
//
// A training job as its user asked for it: the request of CreateTrainingJob, checked member by
// member against the limits of the API, with its defaults filled in. Source of every pattern, enum
// and maximum: the service model of SageMaker 2017-07-24 as botocore 1.43 carries it.
//
// Wrong requests throw invalid_argument with one message that lists every violation, in AWS's
// words:
//   2 validation errors detected: Value 'a_b' at 'trainingJobName' failed to satisfy
//   constraint: …; …
//
// A member whose behaviour gruca does not have is refused by name, unless it stands in
// harmless_members(): those are echoed and change nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "spec/node.h"

namespace gruca::spec {

// Temporary credentials of one job.
struct JobCredentials {
    std::string access_key;
    std::string secret_key;
    std::string session_token;

    Json to_json() const;
    static JobCredentials from_json(const Json& json);
};

struct TrainJob {
    std::string name;
    std::string arn;
    std::string image;
    std::vector<std::string> entrypoint;
    std::vector<std::string> arguments;
    std::vector<TaskChannel> channels;
    Json hyperparameters = Json::object();
    Json environment = Json::object();
    std::string output_path;  // S3OutputPath, no trailing '/'.
    bool compress_output = true;
    std::optional<TaskCheckpoint> checkpoint;
    std::string instance_type;
    int instance_count = 1;
    std::int64_t max_runtime_s = 86400;
    bool isolated = false;  // EnableNetworkIsolation.
    // What Describe echoes: the request's members with defaults filled in, without Tags.
    Json echo = Json::object();

    std::string output_uri() const;     // "<output_path>/<name>/output"
    std::string artifacts_uri() const;  // Below it: "model.tar.gz", or the prefix "model/".
    Json to_json() const;
    static TrainJob from_json(const Json& json);
};

struct AccountFacts {
    std::string region;   // "us-east-1"
    std::string account;  // Twelve digits.
};

// Checks and decodes the body of CreateTrainingJob.
TrainJob decode_create_training_job(const Json& request, const AccountFacts& account);

// The request's Tags, checked.
std::vector<std::pair<std::string, std::string>> decode_tags(const Json& tags,
                                                             std::string_view path);

// Members accepted without effect, each with the reason, for the reference page.
struct HarmlessMember {
    const char* path;
    const char* reason;
};
const std::vector<HarmlessMember>& harmless_members();

const std::vector<std::string>& training_instance_types();

}  // namespace gruca::spec
