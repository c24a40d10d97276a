// service/auth/aws_profile.h
//
// The profile `gruca` in the user's AWS files, so that `AWS_PROFILE=gruca aws sagemaker …` finds
// the service. These files are the user's: every line that is not of our profile stays as it is,
// byte for byte, and a profile of that name which we did not write is never touched. Ours is known
// by a comment line that names its access key.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gruca::service {

constexpr std::string_view kProfileName = "gruca";

struct AwsFiles {
    std::filesystem::path credentials;
    std::filesystem::path config;
};

// Where AWS clients look: AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, else below ~/.aws.
// `variable` is getenv or a test's stand-in.
AwsFiles aws_files(const std::function<const char*(const char*)>& variable);

struct AwsProfile {
    std::string access_key;
    std::string secret_key;
    std::string region;
    std::string endpoint;
};

enum class ProfileOutcome {
    written,
    unchanged,
    foreign,     // Someone else's profile has the name, in one of the files; neither was changed.
    not_a_file,  // One of them is a device or a directory, as /dev/null; neither was changed.
};

ProfileOutcome install_profile(const AwsFiles& files, const AwsProfile& profile);

using IniValues = std::vector<std::pair<std::string, std::string>>;

// `text` with the section `[header]`, in which a line names `owner` and the values stand. A section
// of ours is brought up to date line by line; one of somebody else gives nothing.
std::optional<std::string> with_section(std::string_view text, std::string_view header,
                                        std::string_view owner, const IniValues& values);

}  // namespace gruca::service
