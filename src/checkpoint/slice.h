// checkpoint/slice.h
//
// The arithmetic of parts of tensors: a box is a range of indices in every dimension of a tensor,
// stored row by row, as dense as if it were a tensor of its own. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace gruca::checkpoint {

struct Box {
    tensor::Shape start;
    tensor::Shape extent;

    friend bool operator==(const Box&, const Box&) = default;
    friend auto operator<=>(const Box&, const Box&) = default;
};

// The whole of a tensor.
Box whole(const tensor::Shape& shape);
std::string to_string(const Box& box);  // "[0, 0] + [2, 3]"

// Throws invalid_argument unless `box` lies within a tensor of that shape.
void require_within(const Box& box, const tensor::Shape& shape);

// What two boxes of one tensor have in common, or nothing.
std::optional<Box> intersection(const Box& a, const Box& b);

// Where bytes of a box lie.
struct BoxView {
    const Box& box;
    std::span<const std::byte> bytes;
};
struct MutableBoxView {
    const Box& box;
    std::span<std::byte> bytes;
};

// Copies `what`, which lies within both boxes.
void copy_box(const MutableBoxView& to, const BoxView& from, const Box& what,
              std::size_t element_bytes);

// Cuts a box along its first dimensions into boxes of at most `elements_max` elements (but at least
// one), whose bytes follow each other in the memory of the whole. Scalars and empty boxes: one,
// none.
std::vector<Box> cut(const Box& box, std::int64_t elements_max);

}  // namespace gruca::checkpoint
