// data/byte_source.h
//
// The bytes of a file, in order, unpacked if its name ends in .gz. Holds two buffers of 64 KiB.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace gruca::data {

// Owned by one thread.
class ByteSource {
  public:
    virtual ~ByteSource() = default;
    // Returns how many bytes it put into `into`; 0 at the end. Damage throws data_loss with the
    // name of the file.
    virtual std::size_t read(std::span<char> into) = 0;
};

std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

}  // namespace gruca::data
