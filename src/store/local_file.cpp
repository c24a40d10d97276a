#include "store/local_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/error.h"
#include "store/local_directory.h"

namespace gruca::store {
namespace {

constexpr const char* kAttribute = "user.gruca";
constexpr std::uint64_t kCopyBytesMax = 1u << 30;  // In one system call.

std::string attributes_of(int fd) {
    std::array<char, kAttributesBytesMax> text;
    const ssize_t bytes = ::fgetxattr(fd, kAttribute, text.data(), text.size());
    return bytes <= 0 ? "" : std::string(text.data(), static_cast<std::size_t>(bytes));
}

// Closed when there is no such regular file.
UniqueFd open_regular(int directory_fd, const std::string& name, std::string_view key,
                      struct stat& facts) {
    UniqueFd file(
        ::openat(directory_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.is_open() && errno != ENOENT && errno != ELOOP && errno != ENXIO) {
        throw_errno(fmt::format("cannot open the object {}", key));
    }
    if (!file.is_open()) return {};
    if (::fstat(file.get(), &facts) != 0) throw_errno(fmt::format("cannot look at {}", key));
    return S_ISREG(facts.st_mode) ? std::move(file) : UniqueFd();
}

class LocalReader final : public ObjectReader {
  public:
    LocalReader(UniqueFd file, ObjectInfo info) : file_(std::move(file)), info_(std::move(info)) {}

    const ObjectInfo& info() const override { return info_; }
    int fd() const override { return file_.get(); }

    std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
        std::size_t done = 0;
        while (done < into.size()) {
            const ssize_t got = ::pread(file_.get(), into.data() + done, into.size() - done,
                                        static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw_errno("cannot read the object " + info_.key);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

  private:
    const UniqueFd file_;
    const ObjectInfo info_;
};

}  // namespace

std::optional<ObjectInfo> find_file(int directory_fd, const std::string& name,
                                    std::string_view key) {
    const auto reader = open_object(directory_fd, name, key);
    if (!reader) return std::nullopt;
    return reader->info();
}

std::unique_ptr<ObjectReader> open_object(int directory_fd, const std::string& name,
                                          std::string_view key) {
    struct stat facts {};
    UniqueFd file = open_regular(directory_fd, name, key, facts);
    if (!file.is_open()) return nullptr;
    ObjectInfo info = info_of_file(std::string(key), facts);
    info.attributes = attributes_of(file.get());
    return std::make_unique<LocalReader>(std::move(file), std::move(info));
}

bool set_file_attributes(int fd, std::string_view attributes) {
    CHECK(attributes.size() <= kAttributesBytesMax, "{} bytes", attributes.size());
    if (::fsetxattr(fd, kAttribute, attributes.data(), attributes.size(), 0) == 0) return true;
    if (errno == ENOTSUP || errno == EPERM) return false;
    throw_errno("cannot keep the attributes of an object");
}

std::uint64_t copy_between_files(int from, std::uint64_t offset, std::uint64_t bytes, int to) {
    auto at = static_cast<off_t>(offset);
    std::uint64_t done = 0;
    while (done < bytes) {
        const auto piece = static_cast<std::size_t>(std::min(bytes - done, kCopyBytesMax));
        const ssize_t got = ::copy_file_range(from, &at, to, nullptr, piece, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == ENOSPC || errno == EIO || errno == EDQUOT || errno == EFBIG)) {
            throw_errno("cannot copy within the store");
        }
        if (got <= 0) break;
        done += static_cast<std::uint64_t>(got);
    }
    return done;
}

}  // namespace gruca::store
