// model/weight_files.h
//
// The weights of a model directory: one model.safetensors, or several files and the index that says
// which tensor lies in which (model.safetensors.index.json), as transformers writes them from some
// size on. docs/formats/model-directory.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace gruca::model {

constexpr std::uint64_t kShardBytesMax = 5'000'000'000;  // As transformers has it.

// Reads; files are opened when a tensor of theirs is asked for. Owned by one thread.
class WeightFiles {
  public:
    // Throws not_found when the directory has no weights, data_loss for an index that is not one.
    explicit WeightFiles(std::filesystem::path directory);

    // Nothing when there is no such tensor. Throws data_loss, naming both, when the index places it
    // in a file that does not have it.
    std::optional<tensor::Shape> shape_of(const std::string& name);
    std::vector<float> read(const std::string& name);  // The tensor must be there.

  private:
    struct Place {
        const SafetensorsFile* file;
        const SafetensorsFile::Entry* entry;
    };
    std::optional<Place> find(const std::string& name);
    const SafetensorsFile& open(const std::string& file);

    const std::filesystem::path directory_;
    std::optional<std::map<std::string, std::string>> file_of_;  // By tensor; none: one file.
    std::map<std::string, std::unique_ptr<SafetensorsFile>> open_;
};

// Writes one file, or several of at most `shard_bytes_max` bytes of tensors (a larger tensor has
// one of its own) and then the index. Weights written before by either form are removed.
void write_weight_files(const std::filesystem::path& directory,
                        const std::vector<TensorToWrite>& tensors,
                        std::uint64_t shard_bytes_max = kShardBytesMax);

}  // namespace gruca::model
