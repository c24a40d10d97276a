#include "spec/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"

namespace gruca::spec {
namespace {

constexpr std::string_view kTrainerImage = "gruca/llm-trainer";
constexpr std::string_view kHostImage = "gruca/host";
// What belongs to the container contract, and what no program can start without: a checkpoint
// directory must not touch them.
constexpr std::string_view kOwnedPaths[] = {"/opt/ml/input", "/opt/ml/model", "/opt/ml/output",
                                            "/proc",         "/sys",          "/dev",
                                            "/etc/hosts",    "/usr"};

bool is_bucket_name(std::string_view name) {
    const auto is_letter_or_digit = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !name.empty() && name.size() <= 255 && is_letter_or_digit(name.front()) &&
           name.find("..") == std::string_view::npos &&
           std::all_of(name.begin(), name.end(), [&](char c) {
               return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_';
           });
}

void check_s3_uri(const Json& uri, const std::string& path, Violations& violations) {
    const std::string& text = uri.as_string();
    if (!text.starts_with("s3://")) {
        violations.add(uri, path, "Member must start with s3://; https is not supported by gruca");
        return;
    }
    const std::string_view rest = std::string_view(text).substr(5);
    if (!is_bucket_name(rest.substr(0, rest.find('/')))) {
        violations.add(uri, path, "Member must name a valid bucket");
    }
}

void check_image(const Json& algorithm, Violations& violations) {
    const std::string path = "algorithmSpecification.trainingImage";
    const Json* image = algorithm.find("TrainingImage");
    if (image == nullptr) {
        violations.add(Json(), path,
                       "exactly one of TrainingImage and AlgorithmName must be given");
        return;
    }
    const Json* entrypoint = algorithm.find("ContainerEntrypoint");
    const std::string entrypoint_path = "algorithmSpecification.containerEntrypoint";
    if (image->as_string() == kHostImage) {
        if (entrypoint == nullptr) {
            violations.add(Json(), entrypoint_path,
                           "Member must not be null with the image gruca/host, which has no "
                           "program of its own");
        } else if (entrypoint->as_array().at(0).as_string().empty()) {
            violations.add(*entrypoint, entrypoint_path, "The first item must name a program");
        }
    } else if (image->as_string() == kTrainerImage) {
        if (entrypoint) {
            violations.add(*entrypoint, entrypoint_path,
                           "Member must be null with the image gruca/llm-trainer, which has its "
                           "own; use gruca/host to run another program");
        }
    } else {
        violations.add(*image, path,
                       fmt::format("Member must be {} (the built-in trainer) or {} (your own "
                                   "program, by ContainerEntrypoint); other images are not "
                                   "supported by gruca yet",
                                   kTrainerImage, kHostImage));
    }
}

void check_channels(const Json& channels, Violations& violations) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < channels.as_array().size(); ++i) {
        const Json& channel = channels.as_array()[i];
        const std::string path = fmt::format("inputDataConfig.{}.member", i + 1);
        const Json& name = channel.at("ChannelName");
        if (!names.insert(name.as_string()).second) {
            violations.add(name, path + ".channelName",
                           "Channel names must be unique within a training job");
        }
        if (name.as_string() == "." || name.as_string() == "..") {
            violations.add(name, path + ".channelName", "Member must be able to name a directory");
        }
        const Json* s3 = channel.at("DataSource").find("S3DataSource");
        if (s3 == nullptr) {
            violations.add(Json(), path + ".dataSource.s3DataSource", "Member must not be null");
        } else {
            check_s3_uri(s3->at("S3Uri"), path + ".dataSource.s3DataSource.s3Uri", violations);
        }
    }
}

void check_checkpoint(const Json& config, Violations& violations) {
    check_s3_uri(config.at("S3Uri"), "checkpointConfig.s3Uri", violations);
    const Json* local = config.find("LocalPath");
    if (local == nullptr) return;
    const std::string path = "checkpointConfig.localPath";
    const std::string text = without_trailing_slashes(local->as_string());
    if (!text.starts_with('/') || text == "/") {
        violations.add(*local, path, "Member must be an absolute path below /");
        return;
    }
    const auto parts = split(std::string_view(text).substr(1), '/');
    const auto is_bad = [](const std::string& part) {
        return part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos;
    };
    if (std::any_of(parts.begin(), parts.end(), is_bad)) {
        violations.add(*local, path, "Member must not hold empty, '.' or '..' parts");
        return;
    }
    for (const std::string_view owned : kOwnedPaths) {
        const std::string below = std::string(owned) + "/";
        if ((text + "/").starts_with(below) || below.starts_with(text + "/")) {
            violations.add(
                *local, path,
                fmt::format("Member must lie outside {}, which belongs to the platform", owned));
            return;
        }
    }
    if (parts.size() < 2) {  // Nothing can be made in the root of a machine that is only read.
        violations.add(*local, path, "Member must lie deeper than directly below /");
    }
}

void check_profiler(const Json& config, Violations& violations) {
    constexpr std::int64_t kIntervals[] = {100, 200, 500, 1000, 5000, 60000};
    const Json* interval = config.find("ProfilingIntervalInMilliseconds");
    if (interval &&
        std::count(std::begin(kIntervals), std::end(kIntervals), interval->as_int()) == 0) {
        violations.add(*interval, "profilerConfig.profilingIntervalInMilliseconds",
                       "Member must be one of 100, 200, 500, 1000, 5000, 60000");
    }
}

}  // namespace

std::string without_trailing_slashes(std::string text) {
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
}

void check_tags_together(const Json& tags, std::string_view path, Violations& violations) {
    std::set<std::string> keys;
    for (std::size_t i = 0; i < tags.as_array().size(); ++i) {
        const Json& key = tags.as_array()[i].at("Key");
        const std::string at = fmt::format("{}.{}.member.key", path, i + 1);
        if (!keys.insert(key.as_string()).second) {
            violations.add(key, at, "Tag keys must be unique within a request");
        }
        if (to_lower(key.as_string()).starts_with("aws:")) {
            violations.add(key, at, "Tag keys beginning with aws: are reserved");
        }
    }
}

void check_together(const Json& request, Violations& violations) {
    check_image(request.at("AlgorithmSpecification"), violations);
    if (const Json* channels = request.find("InputDataConfig")) {
        check_channels(*channels, violations);
    }
    check_s3_uri(request.at("OutputDataConfig").at("S3OutputPath"), "outputDataConfig.s3OutputPath",
                 violations);
    if (const Json* config = request.find("CheckpointConfig"))
        check_checkpoint(*config, violations);
    if (const Json* config = request.find("ProfilerConfig")) check_profiler(*config, violations);
    if (const Json* tags = request.find("Tags")) check_tags_together(*tags, "tags", violations);
}

}  // namespace gruca::spec
