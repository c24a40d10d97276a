// checkpoint/manifest.h
//
// The one object that makes parts a checkpoint, and the names of all objects. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/slice.h"

namespace gruca::checkpoint {

// Where a box of a tensor lies.
struct Piece {
    std::size_t part;
    std::uint64_t offset;  // In the part, bytes.
    std::uint32_t crc32c;
    Box box;
};

struct StoredTensor {
    std::string name;
    tensor::Dtype dtype;
    tensor::Shape shape;
    std::vector<Piece> pieces;
};

struct Manifest {
    std::int64_t step;
    Json meta;
    std::vector<std::uint64_t> part_bytes;
    std::vector<StoredTensor> tensors;

    const StoredTensor* find(std::string_view name) const;
};

std::string write_manifest(const Manifest& manifest);

// Throws data_loss unless `text` is, to the last bit, what write_manifest made, by a version of it
// that this one understands; unsupported versions throw precondition_failed.
Manifest read_manifest(std::string_view text);

// "" or a prefix that ends in '/'; throws invalid_argument for any other, because "run" would mean
// "run-2" as well.
void require_prefix(std::string_view prefix);

std::string step_prefix(std::string_view prefix, std::int64_t step);  // "…step-00000100/"
std::string manifest_key(std::string_view prefix, std::int64_t step);
std::string part_key(std::string_view prefix, std::int64_t step, std::size_t part,
                     std::size_t parts);

// The step of a key under `prefix`, and the object's name there; nothing for any other key.
struct StepKey {
    std::int64_t step;
    std::string_view name;
    bool is_manifest() const;
};
std::optional<StepKey> parse_key(std::string_view prefix, std::string_view key);

}  // namespace gruca::checkpoint
