// base/file.h
//
// Files and descriptors: whole-file reads, writes that survive a crash, and an owner for a
// descriptor. Failures throw the Error of their errno and name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gruca {

// Owns a file descriptor. Movable, closed on destruction.
class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    ~UniqueFd() { reset(); }
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }

    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    void reset(int fd = -1);

  private:
    int fd_ = -1;
};

// `flags` as for open(2), O_CLOEXEC is added.
UniqueFd open_file(const std::filesystem::path& path, int flags, unsigned mode = 0644);

// Throws resource_exhausted when the file has more than `bytes_max` bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t bytes_max = 64u << 20);

void write_all(int fd, std::span<const std::byte> bytes);
// Returns the bytes read; fewer than asked only at the end of the file.
std::size_t read_full(int fd, std::span<std::byte> into);

// Throws invalid_argument when `path` is a device, a pipe or a directory: to rename a file onto
// "/dev/null" would break the machine. Whoever writes by renaming asks this first.
void require_replaceable(const std::filesystem::path& path);

struct WriteOptions {
    unsigned mode = 0644;
};

// Replaces the file's content atomically and durably: after a crash at any moment `path` has its
// old content or the new one. The file, the rename and the directory are synced before this
// returns.
void write_file_atomic(const std::filesystem::path& path, std::string_view content,
                       WriteOptions options = {});

void sync_directory(const std::filesystem::path& directory);

}  // namespace gruca
