// cli/installation.h
//
// What the CLI learns from the service's data directory: whether a service runs there, where it
// listens, and the admin key. docs/formats/service-json.md and docs/formats/credentials.md say what
// is in the files.
//
// Thread-compatible.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "net/sigv4.h"

namespace gruca::cli {

struct Installation {
    std::filesystem::path data_dir;
    pid_t pid = 0;
    std::string endpoint;
    std::string region;
    std::string account;
    net::Credentials credentials;
    Json facts;  // service.json as it is.
};

// --data-dir when given, else $GRUCA_HOME, else ~/.gruca; absolute.
std::filesystem::path choose_data_dir(
    const std::optional<std::string>& given,
    const std::function<std::optional<std::string>(const std::string&)>& environment);

// Nothing when no service runs there: no service.json, or its process is gone.
std::optional<Installation> find_service(const std::filesystem::path& data_dir);

// As find_service; throws unavailable and says how to start one.
Installation require_service(const std::filesystem::path& data_dir);

// The [gruca] profile of an AWS credentials file. Throws data_loss when it has none.
net::Credentials read_credentials(const std::filesystem::path& file);

}  // namespace gruca::cli
