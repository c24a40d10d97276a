#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/temporaries.h"
#include "base/text.h"

namespace gruca {

void UniqueFd::reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

UniqueFd open_file(const std::filesystem::path& path, int flags, unsigned mode) {
    UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
    if (!fd.is_open()) throw_errno("cannot open " + path.string());
    return fd;
}

std::string read_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
    const UniqueFd fd = open_file(path, O_RDONLY);
    std::string content;
    constexpr std::size_t kPiece = 64u << 10;
    for (std::size_t size = 0;;) {
        content.resize(size + kPiece);
        const ssize_t got = ::read(fd.get(), content.data() + size, kPiece);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno("cannot read " + path.string());
        size += static_cast<std::size_t>(got);
        content.resize(size);
        if (got == 0) return content;
        if (size > bytes_max) {
            throw Error(ErrorCode::resource_exhausted, path.string() + " has more than " +
                                                           human_bytes(bytes_max) +
                                                           ", the most that is read at once");
        }
    }
}

void write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) throw_errno("cannot write");
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
}

std::size_t read_full(int fd, std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
        const ssize_t got = ::read(fd, into.data() + done, into.size() - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno("cannot read");
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

void require_replaceable(const std::filesystem::path& path) {
    struct stat facts = {};
    if (::lstat(path.c_str(), &facts) != 0 || S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode)) {
        return;
    }
    throw Error(ErrorCode::invalid_argument, "not a file, so it is not replaced: " + path.string());
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content,
                       WriteOptions options) {
    require_replaceable(path);
    const auto [fd, fresh] = make_temporary(path);
    try {
        if (::fchmod(fd.get(), options.mode) != 0) throw_errno("cannot set the mode");
        write_all(fd.get(), bytes_of(content));
        if (::fsync(fd.get()) != 0) throw_errno("cannot sync");
        if (::rename(fresh.c_str(), path.c_str()) != 0) throw_errno("cannot rename");
    } catch (Error& error) {
        ::unlink(fresh.c_str());
        error.add_context("writing " + path.string());
        throw;
    }
    sync_directory(path.parent_path().empty() ? "." : path.parent_path());
}

void sync_directory(const std::filesystem::path& directory) {
    const UniqueFd fd = open_file(directory, O_RDONLY | O_DIRECTORY);
    if (::fsync(fd.get()) != 0) throw_errno("cannot sync the directory " + directory.string());
}

}  // namespace gruca
