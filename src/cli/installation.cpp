#include "cli/installation.h"

#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/process_id.h"
#include "base/text.h"

namespace gruca::cli {
namespace fs = std::filesystem;

fs::path choose_data_dir(
    const std::optional<std::string>& given,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
    if (given && !given->empty()) return fs::absolute(*given);
    if (const auto home = environment("GRUCA_HOME"); home && !home->empty()) {
        return fs::absolute(*home);
    }
    const auto user_home = environment("HOME");
    if (!user_home || user_home->empty()) {
        throw Error(ErrorCode::invalid_argument,
                    "neither GRUCA_HOME nor HOME is set; say where with --data-dir");
    }
    return fs::absolute(fs::path(*user_home) / ".gruca");
}

std::optional<Installation> find_service(const fs::path& data_dir) {
    const fs::path file = data_dir / "service.json";
    if (!fs::exists(file)) return std::nullopt;
    Installation found;
    found.data_dir = data_dir;
    found.facts = Json::parse(read_file(file));
    found.pid = static_cast<pid_t>(found.facts.at("pid").as_int());
    const auto process = process_id_of(found.pid);
    if (!process) return std::nullopt;
    // The process id of a killed service may be another process's by now.
    const std::string started = std::to_string(process->start);
    if (const Json* said = found.facts.find("started"); said && said->dump() != started) {
        return std::nullopt;
    }
    found.endpoint = found.facts.at("endpoint").as_string();
    found.region = found.facts.get_string("region");
    found.account = found.facts.get_string("account");
    found.credentials = read_credentials(data_dir / "credentials");
    return found;
}

Installation require_service(const fs::path& data_dir) {
    auto found = find_service(data_dir);
    if (found) return *std::move(found);
    throw Error(ErrorCode::unavailable,
                "the service is not running; start it with: gruca service start (data directory " +
                    data_dir.string() + ")");
}

net::Credentials read_credentials(const fs::path& file) {
    std::map<std::string, std::string> values;
    bool in_profile = false;
    for (const std::string& line : split(read_file(file), '\n')) {
        const std::string_view text = trim(line);
        if (text.starts_with('[')) {
            in_profile = text == "[gruca]";
            continue;
        }
        const std::size_t equals = text.find('=');
        if (!in_profile || equals == std::string_view::npos) continue;
        values[std::string(trim(text.substr(0, equals)))] = trim(text.substr(equals + 1));
    }
    net::Credentials credentials{.access_key = values["aws_access_key_id"],
                                 .secret_key = values["aws_secret_access_key"],
                                 .session_token = values["aws_session_token"]};
    if (credentials.access_key.empty() || credentials.secret_key.empty()) {
        throw Error(ErrorCode::data_loss,
                    "the file holds no key in a profile [gruca]: " + file.string());
    }
    return credentials;
}

}  // namespace gruca::cli
