// data/mapped_file.h
//
// A file as a span of bytes, mapped read-only: pages come when they are touched and are shared by
// every process that maps the same file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace gruca::data {

// Thread-safe. The file must not shrink while it is mapped.
class MappedFile {
  public:
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;

    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
};

}  // namespace gruca::data
