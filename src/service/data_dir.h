// service/data_dir.h
//
// The service's directory: private to its user, used by one service at a time. Says where
// everything lies, and holds service.json (docs/formats/service-json.md), by which the CLI finds a
// service that runs.
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace gruca::service {

struct ServiceFacts {
    std::string endpoint;  // "http://127.0.0.1:7717"
    std::string region;
    std::string account;
};

class DataDir {
  public:
    // Makes the directory (mode 0700) and locks it. Throws already_exists, naming directory and
    // process, when another service holds it.
    explicit DataDir(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path database() const { return path_ / "state.db"; }
    std::filesystem::path logs() const { return path_ / "logs"; }
    std::filesystem::path store() const { return path_ / "store"; }
    std::filesystem::path uploads() const { return path_ / "uploads"; }  // Multipart, unfinished.
    std::filesystem::path nodes() const { return path_ / "nodes"; }
    std::filesystem::path credentials() const { return path_ / "credentials"; }
    std::filesystem::path service_file() const { return path_ / "service.json"; }
    std::filesystem::path port_file() const { return path_ / "port"; }

    // Names this process too, and when it started, because a process id alone is used again.
    void announce(const ServiceFacts& facts) const;
    void withdraw() const;

    // On which the last service of this directory listened, also one that was killed; 0 at the
    // first start.
    std::uint16_t last_port() const;
    void keep_port(std::uint16_t port) const;

  private:
    std::filesystem::path path_;
    UniqueFd lock_;
};

}  // namespace gruca::service
