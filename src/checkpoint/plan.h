// checkpoint/plan.h
//
// Who writes what. From what every rank says it has, each rank works out the same plan: every
// element of every tensor is written once, by a rank that has it, and what several ranks have is
// shared among them evenly. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace gruca::checkpoint {

// Tensors are written in pieces of at most this size, each with a checksum of its own. It bounds
// the memory that writing and reading need beside the tensors.
inline constexpr std::size_t kPieceBytesMax = 8u << 20;

struct PlannedPiece {
    std::size_t tensor;  // In Plan::tensors.
    Box within;          // The slice of the writing rank from which it is taken.
    Box box;
};

struct Plan {
    struct Tensor {
        std::string name;
        tensor::Dtype dtype;
        tensor::Shape shape;
    };
    std::vector<Tensor> tensors;
    std::vector<std::vector<PlannedPiece>> of_rank;  // In the order in which they are written.

    std::size_t bytes_of(const PlannedPiece& piece) const;
};

std::string describe(std::span<const SourceSlice> slices);

// From the descriptions of all ranks, by rank. Throws invalid_argument when ranks contradict each
// other about a tensor, when slices overlap without being equal, or when together they leave a part
// of a tensor out.
Plan make_plan(const std::vector<std::string>& descriptions);

}  // namespace gruca::checkpoint
