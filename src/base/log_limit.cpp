#include "base/log_limit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>

#include "base/file.h"

namespace gruca {
namespace {

namespace fs = std::filesystem;

struct Limit {
    fs::path path = {};  // Empty: none.
    LogLimits limits = {};
};

// Written once by main before other threads exist, only read afterwards.
Limit& limit() {
    static Limit instance;
    return instance;
}

bool is_file_of(int fd, const struct stat& file) {
    struct stat facts = {};
    return ::fstat(fd, &facts) == 0 && facts.st_dev == file.st_dev && facts.st_ino == file.st_ino;
}

fs::path numbered(const fs::path& path, int number) {
    return path.string() + "." + std::to_string(number);
}

// The next file is made first: where that fails, the full one goes on.
void begin_next_file(const fs::path& path, int files_kept, const struct stat& full) {
    const fs::path next = path.string() + ".next";
    const UniqueFd file(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
                               full.st_mode & 0777u));
    if (!file.is_open()) return;
    for (int i = files_kept - 1; i >= 1; --i) {
        ::rename(numbered(path, i).c_str(), numbered(path, i + 1).c_str());
    }
    ::rename(path.c_str(), numbered(path, 1).c_str());
    ::rename(next.c_str(), path.c_str());
    if (is_file_of(STDOUT_FILENO, full)) ::dup2(file.get(), STDOUT_FILENO);
    ::dup2(file.get(), STDERR_FILENO);
}

}  // namespace

void limit_log(const fs::path& path, LogLimits limits) {
    limit() = {.path = path, .limits = limits};
}

void keep_log_limits() {
    const auto& [path, limits] = limit();
    if (path.empty()) return;
    static std::mutex mutex;  // A second thread finds a file that is not full any more.
    const std::lock_guard lock(mutex);
    struct stat facts = {};
    if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    if (static_cast<std::uint64_t>(facts.st_size) < limits.file_bytes_max) return;
    if (is_file_of(STDERR_FILENO, facts)) begin_next_file(path, limits.files_kept, facts);
}

}  // namespace gruca
