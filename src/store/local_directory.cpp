#include "store/local_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "store/local_names.h"

namespace gruca::store {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMakeAttemptsMax = 1000;
constexpr int kTreeDepthMax = 2 * static_cast<int>(kKeyBytesMax);

bool is_absence(int error) {
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

UniqueFd open_root(int root_fd) {
    UniqueFd root(::openat(root_fd, ".", kDirectoryFlags));
    if (!root.is_open()) throw_errno("cannot open the root of the store");
    return root;
}

// Opens `name` in `directory`, making it first when it is absent. Closed when it went away between.
UniqueFd enter(int directory, const std::string& name) {
    UniqueFd next(::openat(directory, name.c_str(), kDirectoryFlags));
    if (next.is_open() || errno != ENOENT) return next;
    if (::mkdirat(directory, name.c_str(), 0755) != 0 && errno != EEXIST) return {};
    return UniqueFd(::openat(directory, name.c_str(), kDirectoryFlags));
}

void sweep(UniqueFd directory, TimePoint limit, int depth) {
    DirectoryNames names(std::move(directory));
    while (const char* found = names.next()) {
        const std::string name = found;
        struct stat facts {};
        if (::fstatat(names.fd(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISREG(facts.st_mode) && name.starts_with(kTemporaryPrefix) &&
            info_of_file({}, facts).modified < limit) {
            ::unlinkat(names.fd(), name.c_str(), 0);
        }
        if (!S_ISDIR(facts.st_mode) || depth == kTreeDepthMax ||
            read_local_name(name).kind != LocalName::Kind::directory) {
            continue;
        }
        UniqueFd next(::openat(names.fd(), name.c_str(), kDirectoryFlags));
        if (next.is_open()) sweep(std::move(next), limit, depth + 1);
    }
}

bool is_of_directory(std::string_view name) {
    return read_local_name(name).kind == LocalName::Kind::directory;
}

// Whether nothing lies in the tree but directories and the marks of kept ones.
bool is_unused(UniqueFd directory, int depth) {
    if (!directory.is_open() || depth == kTreeDepthMax) return false;
    DirectoryNames names(std::move(directory));
    while (const char* found = names.next()) {
        const std::string_view name = found;
        if (name == "." || name == ".." || name == kKeepName) continue;
        if (!is_of_directory(name)) return false;
        if (!is_unused(UniqueFd(::openat(names.fd(), found, kDirectoryFlags)), depth + 1)) {
            return false;
        }
    }
    return true;
}

// What comes into the tree meanwhile stays, and so do the directories above it.
bool remove_tree(int parent, const std::string& name) {
    UniqueFd directory(::openat(parent, name.c_str(), kDirectoryFlags));
    if (!directory.is_open()) return errno == ENOENT;
    DirectoryNames names(std::move(directory));
    while (const char* found = names.next()) {
        if (is_of_directory(found) && !remove_tree(names.fd(), found)) return false;
    }
    const bool was_kept = ::unlinkat(names.fd(), kKeepName, 0) == 0;
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
    if (was_kept) {
        const UniqueFd mark(
            ::openat(names.fd(), kKeepName, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
        if (!mark.is_open()) throw_errno("cannot keep the directory " + name + " of the store");
    }
    return false;
}

}  // namespace

DirectoryNames::DirectoryNames(UniqueFd directory) : stream_(::fdopendir(directory.get())) {
    if (stream_ == nullptr) throw_errno("cannot read a directory of the store");
    directory.release();
}

DirectoryNames::~DirectoryNames() {
    ::closedir(stream_);
}

int DirectoryNames::fd() const {
    return ::dirfd(stream_);
}

const char* DirectoryNames::next() {
    errno = 0;
    const dirent* found = ::readdir(stream_);
    if (found == nullptr && errno != 0) throw_errno("cannot read a directory of the store");
    return found == nullptr ? nullptr : found->d_name;
}

std::optional<UniqueFd> find_directory(int root_fd, std::span<const std::string> names) {
    UniqueFd directory = open_root(root_fd);
    for (const std::string& name : names) {
        UniqueFd next(::openat(directory.get(), name.c_str(), kDirectoryFlags));
        if (!next.is_open()) {
            if (is_absence(errno)) return std::nullopt;
            throw_errno("cannot open the directory " + name + " of the store");
        }
        directory = std::move(next);
    }
    return directory;
}

UniqueFd make_directory(int root_fd, std::span<const std::string> names) {
    for (int attempt = 0; attempt < kMakeAttemptsMax; ++attempt) {
        UniqueFd directory = open_root(root_fd);
        bool vanished = false;
        for (const std::string& name : names) {
            UniqueFd next = enter(directory.get(), name);
            vanished = !next.is_open() && errno == ENOENT;
            if (vanished) break;
            if (!next.is_open()) throw_errno("cannot make the directory " + name + " of the store");
            directory = std::move(next);
        }
        if (!vanished) return directory;
    }
    throw Error(ErrorCode::unavailable,
                "directories of the store are removed as fast as they are made; last: " +
                    (names.empty() ? std::string() : names.back()));
}

void sync_directories(int root_fd, std::span<const std::string> names) {
    UniqueFd directory = open_root(root_fd);
    if (::fsync(directory.get()) != 0) throw_errno("cannot sync the root of the store");
    for (const std::string& name : names) {
        UniqueFd next(::openat(directory.get(), name.c_str(), kDirectoryFlags));
        // Removed meanwhile, with the object: nothing is left to keep.
        if (!next.is_open() && is_absence(errno)) return;
        if (!next.is_open() || ::fsync(next.get()) != 0) {
            throw_errno("cannot sync the directory " + name + " of the store");
        }
        directory = std::move(next);
    }
}

void remove_empty_directories(int root_fd, std::span<const std::string> names) {
    for (; !names.empty(); names = names.first(names.size() - 1)) {
        const auto parent = find_directory(root_fd, names.first(names.size() - 1));
        if (!parent) continue;
        const int failed = ::unlinkat(parent->get(), names.back().c_str(), AT_REMOVEDIR);
        if (failed != 0 && errno != ENOENT) return;  // Not empty, or mounted on: it stays.
    }
}

bool remove_unused_directory(int root_fd, std::span<const std::string> names) {
    const auto parent = find_directory(root_fd, names.first(names.size() - 1));
    auto directory = find_directory(root_fd, names);
    if (!parent || !directory) return true;
    return is_unused(std::move(*directory), 0) && remove_tree(parent->get(), names.back());
}

ObjectInfo info_of_file(std::string key, const struct stat& facts) {
    const std::int64_t ns =
        std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + std::int64_t{facts.st_mtim.tv_nsec};
    return {.key = std::move(key),
            .bytes = static_cast<std::uint64_t>(facts.st_size),
            .etag = fmt::format("{:x}-{:x}-{:x}", facts.st_ino, ns, facts.st_size),
            .modified = time_from_ms(ns / 1'000'000)};
}

void sweep_temporaries(int root_fd, TimePoint limit) {
    sweep(open_root(root_fd), limit, 0);
}

}  // namespace gruca::store
