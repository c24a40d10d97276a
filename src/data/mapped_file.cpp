#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace gruca::data {

MappedFile::MappedFile(const std::filesystem::path& path) {
    const UniqueFd fd = open_file(path, O_RDONLY);
    struct stat facts {};
    if (::fstat(fd.get(), &facts) != 0) throw_errno("cannot look at " + path.string());
    const auto size = static_cast<std::size_t>(facts.st_size);
    if (size == 0) return;  // Nothing can be mapped, and nothing needs to be.
    void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (start == MAP_FAILED) throw_errno("cannot map " + path.string());
    bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
}

}  // namespace gruca::data
