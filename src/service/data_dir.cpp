#include "service/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/json.h"
#include "base/process_id.h"
#include "base/text.h"

namespace gruca::service {

DataDir::DataDir(const std::filesystem::path& path) : path_(std::filesystem::absolute(path)) {
    std::filesystem::create_directories(path_);
    if (::chmod(path_.c_str(), 0700) != 0) throw_errno("cannot make private " + path_.string());
    const std::filesystem::path lock = path_ / "lock";
    lock_ = open_file(lock, O_RDWR | O_CREAT, 0600);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) throw_errno("cannot lock " + lock.string());
        throw Error(ErrorCode::already_exists,
                    "another gruca-service uses this data directory; stop it, or choose another "
                    "with --data-dir: " +
                        path_.string() + ", process " + std::string(trim(read_file(lock))));
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(lock_.get(), 0) != 0) throw_errno("cannot write " + lock.string());
    write_all(lock_.get(), bytes_of(pid));
    withdraw();  // What a killed service left.
}

void DataDir::announce(const ServiceFacts& facts) const {
    const ProcessId self = process_id_of(::getpid()).value();
    const Json json = Json::object({{"pid", self.pid},
                                    {"started", self.start},
                                    {"endpoint", facts.endpoint},
                                    {"region", facts.region},
                                    {"account", facts.account}});
    write_file_atomic(service_file(), json.dump(2) + "\n", {.mode = 0600});
}

void DataDir::withdraw() const {
    if (::unlink(service_file().c_str()) != 0 && errno != ENOENT) {
        throw_errno("cannot remove " + service_file().string());
    }
}

std::uint16_t DataDir::last_port() const {
    std::error_code failure;
    if (!std::filesystem::exists(port_file(), failure)) return 0;
    const auto port = parse_int(trim(read_file(port_file())));
    return port && *port > 0 && *port <= 65535 ? static_cast<std::uint16_t>(*port) : 0;
}

void DataDir::keep_port(std::uint16_t port) const {
    if (port == last_port()) return;
    write_file_atomic(port_file(), std::to_string(port) + "\n", {.mode = 0600});
}

}  // namespace gruca::service
