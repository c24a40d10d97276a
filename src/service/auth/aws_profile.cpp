#include "service/auth/aws_profile.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/temporaries.h"
#include "base/text.h"

namespace gruca::service {
namespace {

constexpr std::string_view kMarker = "# written by gruca-service for ";

// Lines with their ends, so that joining them gives the text again.
std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return lines;
}

// "[profile  gruca] # mine" -> "profile gruca"; nothing for a line that opens no section.
std::optional<std::string> section_of(std::string_view line) {
    if (line.empty() || line[0] != '[') return std::nullopt;
    const std::size_t end = line.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    std::string header;
    for (const std::string& word : split(trim(line.substr(1, end - 1)), ' ')) {
        std::string_view bare = trim(word);
        while (!bare.empty() && (bare.front() == '"' || bare.front() == '\''))
            bare.remove_prefix(1);
        while (!bare.empty() && (bare.back() == '"' || bare.back() == '\'')) bare.remove_suffix(1);
        if (bare.empty()) continue;
        if (!header.empty()) header += ' ';
        header += bare;
    }
    return header;
}

std::string key_of(std::string_view line) {
    return std::string(trim(line.substr(0, line.find('='))));
}

void append_section(std::string& text, std::string_view header, std::string_view owner,
                    const IniValues& values, std::string_view line_end) {
    if (!text.empty() && text.back() != '\n') text += line_end;
    if (!text.empty()) text += line_end;
    text += '[' + std::string(header) + ']' + std::string(line_end);
    text += std::string(kMarker) + std::string(owner) + std::string(line_end);
    for (const auto& [key, value] : values) {
        text += key + " = " + value + std::string(line_end);
    }
}

std::string read_if_there(const std::filesystem::path& path) {
    return std::filesystem::exists(path) ? read_file(path) : std::string();
}

// "/dev/null" is a usual way of saying "no file": to replace it would break the machine.
bool may_be_written(const std::filesystem::path& path) {
    return !std::filesystem::exists(path) || std::filesystem::is_regular_file(path);
}

void write_private(const std::filesystem::path& path, const std::string& content) {
    // A file kept elsewhere and linked here stays there.
    const std::filesystem::path target = std::filesystem::weakly_canonical(path);
    struct stat facts = {};
    const bool exists = ::stat(target.c_str(), &facts) == 0;
    if (!exists && !target.parent_path().empty() &&
        std::filesystem::create_directories(target.parent_path())) {
        std::filesystem::permissions(target.parent_path(), std::filesystem::perms::owner_all);
    }
    write_file_atomic(target, content, {.mode = exists ? facts.st_mode & 07777u : 0600u});
}

}  // namespace

AwsFiles aws_files(const std::function<const char*(const char*)>& variable) {
    const char* home = variable("HOME");
    const std::filesystem::path base = home == nullptr ? "/root" : home;
    const auto choose = [&](const char* name, const char* otherwise) {
        const char* text = variable(name);
        if (text == nullptr || *text == '\0') return base / ".aws" / otherwise;
        const std::string_view chosen = text;
        if (chosen.starts_with("~/")) return base / chosen.substr(2);
        return std::filesystem::path(chosen);
    };
    return {.credentials = choose("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            .config = choose("AWS_CONFIG_FILE", "config")};
}

std::optional<std::string> with_section(std::string_view text, std::string_view header,
                                        std::string_view owner, const IniValues& values) {
    std::vector<std::string> lines = lines_of(text);
    const std::string line_end = !lines.empty() && lines[0].ends_with("\r\n") ? "\r\n" : "\n";
    const auto opens = [&](const std::string& line) { return section_of(line) == header; };
    const auto begin = std::find_if(lines.begin(), lines.end(), opens);
    if (begin == lines.end()) {
        std::string result(text);
        append_section(result, header, owner, values, line_end);
        return result;
    }
    if (std::find_if(begin + 1, lines.end(), opens) != lines.end()) return std::nullopt;
    const auto end = std::find_if(begin + 1, lines.end(),
                                  [](const std::string& line) { return section_of(line); });
    const std::string marker = std::string(kMarker) + std::string(owner);
    const auto marked =
        std::find_if(begin + 1, end, [&](const std::string& line) { return trim(line) == marker; });
    if (marked == end) return std::nullopt;

    std::string missing;
    for (const auto& [key, value] : values) {
        const std::string wanted = key + " = " + value;
        const std::string& name = key;
        const auto line = std::find_if(begin + 1, end, [&](const std::string& candidate) {
            return candidate.find('=') != std::string::npos && key_of(candidate) == name;
        });
        if (line == end) {
            missing += wanted + line_end;
        } else if (trim(*line) != wanted) {
            *line = wanted + (line->ends_with("\r\n") ? "\r\n" : "\n");
        }
    }
    if (!marked->ends_with('\n') && !missing.empty()) *marked += line_end;
    *marked += missing;
    std::string result;
    for (const std::string& line : lines) result += line;
    return result;
}

ProfileOutcome install_profile(const AwsFiles& files, const AwsProfile& profile) {
    if (!may_be_written(files.credentials) || !may_be_written(files.config)) {
        return ProfileOutcome::not_a_file;
    }
    for (const std::filesystem::path& file : {files.credentials, files.config}) {
        sweep_temporaries(std::filesystem::weakly_canonical(file));  // Of a killed service.
    }
    const std::string credentials = read_if_there(files.credentials);
    const auto new_credentials = with_section(
        credentials, kProfileName, profile.access_key,
        {{"aws_access_key_id", profile.access_key}, {"aws_secret_access_key", profile.secret_key}});
    if (!new_credentials) return ProfileOutcome::foreign;
    // Some people keep both in one file; then the second change stands upon the first.
    const bool one_file = std::filesystem::weakly_canonical(files.credentials) ==
                          std::filesystem::weakly_canonical(files.config);
    const std::string config = one_file ? *new_credentials : read_if_there(files.config);
    const auto new_config = with_section(
        config, "profile " + std::string(kProfileName), profile.access_key,
        {{"region", profile.region}, {"endpoint_url", profile.endpoint}, {"output", "json"}});
    if (!new_config) return ProfileOutcome::foreign;
    if (*new_credentials == credentials && *new_config == config) return ProfileOutcome::unchanged;
    if (*new_credentials != credentials) write_private(files.credentials, *new_credentials);
    if (*new_config != config) write_private(files.config, *new_config);
    return ProfileOutcome::written;
}

}  // namespace gruca::service
