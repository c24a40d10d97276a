// model/safetensors.h
//
// The file format of model weights on Hugging Face: eight bytes of header length, a JSON header
// that names each tensor's type, shape and range of bytes, then the bytes. Read here as a
// stranger's file: whatever its header claims, nothing is read beyond the file, and a header that
// does not describe the file exactly throws data_loss. docs/formats/model-directory.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace gruca::model {

inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100u << 20;

// Owned by one thread.
class SafetensorsFile {
  public:
    struct Entry {
        std::string name;
        tensor::Dtype dtype;
        tensor::Shape shape;
        std::uint64_t begin;  // In the file.
        std::uint64_t bytes;
    };

    explicit SafetensorsFile(const std::filesystem::path& path);

    const std::vector<Entry>& entries() const { return entries_; }
    const Entry* find(std::string_view name) const;

    // The elements, whatever their type, as floats.
    std::vector<float> read(const Entry& entry) const;

  private:
    void read_header(std::uint64_t file_bytes);
    [[noreturn]] void throw_corrupt(std::string_view what) const;

    std::filesystem::path path_;
    UniqueFd fd_;
    std::vector<Entry> entries_;
};

struct TensorToWrite {
    std::string name;
    tensor::Shape shape;
    std::function<std::vector<float>()> values;  // Called when its turn has come.
};

// F32, in the given order. The file appears whole under its name, or not at all.
void write_safetensors(const std::filesystem::path& path,
                       const std::vector<TensorToWrite>& tensors);

}  // namespace gruca::model
