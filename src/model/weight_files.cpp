#include "model/weight_files.h"

#include <fmt/format.h>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace gruca::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::map<std::string, std::string> read_index(const fs::path& path) {
    std::map<std::string, std::string> file_of;
    const auto wrong = run_guarded([&] {
        const Json index = Json::parse(read_file(path));
        for (const auto& [tensor, file] : index.at("weight_map").as_object()) {
            const std::string& name = file.as_string();
            if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos) {
                throw Error(ErrorCode::data_loss, "not the name of a file beside it: " + name);
            }
            file_of[tensor] = name;
        }
    });
    if (wrong) {
        throw Error(ErrorCode::data_loss,
                    fmt::format("not a sound index: {}: {}", path.string(), wrong->message()));
    }
    return file_of;
}

std::uint64_t bytes_of(const TensorToWrite& one) {
    return 4 * static_cast<std::uint64_t>(tensor::element_count(one.shape));
}

std::vector<std::vector<TensorToWrite>> shards_of(const std::vector<TensorToWrite>& tensors,
                                                  std::uint64_t bytes_max) {
    std::vector<std::vector<TensorToWrite>> shards(1);
    std::uint64_t filled = 0;
    for (const TensorToWrite& one : tensors) {
        if (!shards.back().empty() && filled + bytes_of(one) > bytes_max) {
            shards.emplace_back();
            filled = 0;
        }
        shards.back().push_back(one);
        filled += bytes_of(one);
    }
    return shards;
}

// So that a reader never finds the weights of two models.
void remove_old(const fs::path& directory) {
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        if (name == kIndex || name == kOneFile ||
            (name.starts_with("model-") && name.ends_with(".safetensors"))) {
            old.push_back(entry.path());
        }
    }
    for (const fs::path& path : old) fs::remove(path);
}

}  // namespace

WeightFiles::WeightFiles(fs::path directory) : directory_(std::move(directory)) {
    if (fs::exists(directory_ / kOneFile)) return;
    if (!fs::exists(directory_ / kIndex)) {
        throw Error(ErrorCode::not_found, fmt::format("no weights, neither {} nor {}, in {}",
                                                      kOneFile, kIndex, directory_.string()));
    }
    file_of_ = read_index(directory_ / kIndex);
}

const SafetensorsFile& WeightFiles::open(const std::string& file) {
    std::unique_ptr<SafetensorsFile>& opened = open_[file];
    if (!opened) opened = std::make_unique<SafetensorsFile>(directory_ / file);
    return *opened;
}

std::optional<WeightFiles::Place> WeightFiles::find(const std::string& name) {
    std::string file = kOneFile;
    if (file_of_) {
        const auto found = file_of_->find(name);
        if (found == file_of_->end()) return std::nullopt;
        file = found->second;
    }
    const SafetensorsFile& opened = open(file);
    const SafetensorsFile::Entry* entry = opened.find(name);
    if (entry != nullptr) return Place{&opened, entry};
    if (!file_of_) return std::nullopt;
    throw Error(ErrorCode::data_loss, fmt::format("{} says that {} lies in {}, and it does not",
                                                  (directory_ / kIndex).string(), name, file));
}

std::optional<tensor::Shape> WeightFiles::shape_of(const std::string& name) {
    const auto place = find(name);
    if (!place) return std::nullopt;
    return place->entry->shape;
}

std::vector<float> WeightFiles::read(const std::string& name) {
    const auto place = find(name);
    if (!place) throw Error(ErrorCode::not_found, "no such tensor: " + name);
    return place->file->read(*place->entry);
}

void write_weight_files(const fs::path& directory, const std::vector<TensorToWrite>& tensors,
                        std::uint64_t shard_bytes_max) {
    const auto shards = shards_of(tensors, shard_bytes_max);
    remove_old(directory);
    if (shards.size() == 1) return write_safetensors(directory / kOneFile, tensors);
    Json weight_map = Json::object();
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const std::string file =
            fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
        write_safetensors(directory / file, shards[i]);
        for (const TensorToWrite& one : shards[i]) {
            weight_map.set(one.name, file);
            total += bytes_of(one);
        }
    }
    const Json index = Json::object(
        {{"metadata", Json::object({{"total_size", total}})}, {"weight_map", weight_map}});
    write_file_atomic(directory / kIndex, index.dump(2) + "\n");
}

}  // namespace gruca::model
