#include "service/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/durable_directories.h"
#include "base/error.h"
#include "base/json.h"
#include "base/process_id.h"
#include "base/temporaries.h"
#include "base/text.h"

namespace gruca::service {
namespace {

// A service that was killed as it started an agent has a child for some moments more, which holds
// the lock until it becomes the agent.
constexpr int kLockTries = 250;
constexpr std::chrono::milliseconds kLockPause{20};

bool is_alive(const std::string& pid) {
    const auto number = parse_int(trim(pid));
    return number && process_id_of(static_cast<pid_t>(*number));
}

// False: another service that lives holds it.
bool take_lock(const UniqueFd& file, const std::filesystem::path& path) {
    for (int tries = 0; tries < kLockTries; ++tries) {
        if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK) throw_errno("cannot lock " + path.string());
        if (is_alive(read_file(path))) return false;
        std::this_thread::sleep_for(kLockPause);
    }
    return false;
}

}  // namespace

DataDir::DataDir(const std::filesystem::path& path) : path_(std::filesystem::absolute(path)) {
    create_directories_durably(path_);
    if (::chmod(path_.c_str(), 0700) != 0) throw_errno("cannot make private " + path_.string());
    const std::filesystem::path lock = path_ / "lock";
    lock_ = open_file(lock, O_RDWR | O_CREAT, 0600);
    if (!take_lock(lock_, lock)) {
        throw Error(ErrorCode::already_exists,
                    "another gruca-service uses this data directory; stop it, or choose another "
                    "with --data-dir: " +
                        path_.string() + ", process " + std::string(trim(read_file(lock))));
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(lock_.get(), 0) != 0) throw_errno("cannot write " + lock.string());
    write_all(lock_.get(), bytes_of(pid));
    withdraw();  // What a killed service left.
    for (const std::filesystem::path& file : {service_file(), port_file(), credentials()}) {
        sweep_temporaries(file);
    }
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
