#include "checkpoint/slice.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace gruca::checkpoint {
namespace {

using tensor::element_count;
using tensor::Shape;

// Where the element at `index` of the tensor lies in the memory of a box, in elements.
std::size_t position(const Box& box, const Shape& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
        at = at * box.extent[d] + (index[d] - box.start[d]);
    }
    return static_cast<std::size_t>(at);
}

// Moves `index` to the next row of `box`, the last dimension staying at its start. False at the
// end.
bool next_row(Shape& index, const Box& box) {
    for (std::size_t d = index.size() - 1; d-- > 0;) {
        if (++index[d] < box.start[d] + box.extent[d]) return true;
        index[d] = box.start[d];
    }
    return false;
}

void cut_from(std::size_t dimension, const Box& box, std::int64_t elements_max,
              std::vector<Box>& pieces) {
    const std::int64_t count = element_count(box.extent);
    if (count == 0) return;
    if (count <= elements_max || dimension == box.extent.size()) {
        pieces.push_back(box);
        return;
    }
    const std::int64_t rows = box.extent[dimension];
    const std::int64_t rows_a_piece = std::max<std::int64_t>(elements_max / (count / rows), 1);
    for (std::int64_t row = 0; row < rows; row += rows_a_piece) {
        Box piece = box;
        piece.start[dimension] += row;
        piece.extent[dimension] = std::min(rows_a_piece, rows - row);
        cut_from(dimension + 1, piece, elements_max, pieces);
    }
}

}  // namespace

Box whole(const Shape& shape) {
    return {.start = Shape(shape.size(), 0), .extent = shape};
}

std::string to_string(const Box& box) {
    return tensor::to_string(box.start) + " + " + tensor::to_string(box.extent);
}

void require_within(const Box& box, const Shape& shape) {
    bool is_within = box.start.size() == shape.size() && box.extent.size() == shape.size();
    for (std::size_t d = 0; is_within && d < shape.size(); ++d) {
        is_within = box.start[d] >= 0 && box.extent[d] >= 0 && box.start[d] <= shape[d] &&
                    box.extent[d] <= shape[d] - box.start[d];
    }
    if (is_within) return;
    throw Error(
        ErrorCode::invalid_argument,
        "part " + to_string(box) + " is not within a tensor of shape " + tensor::to_string(shape));
}

std::optional<Box> intersection(const Box& a, const Box& b) {
    CHECK(a.start.size() == b.start.size(), "boxes {} and {}", to_string(a), to_string(b));
    Box common = a;
    for (std::size_t d = 0; d < a.start.size(); ++d) {
        common.start[d] = std::max(a.start[d], b.start[d]);
        const std::int64_t end = std::min(a.start[d] + a.extent[d], b.start[d] + b.extent[d]);
        if (end <= common.start[d]) return std::nullopt;
        common.extent[d] = end - common.start[d];
    }
    return common;
}

void copy_box(const MutableBoxView& to, const BoxView& from, const Box& what,
              std::size_t element_bytes) {
    const auto bytes_of = [&](const Box& box) {
        return static_cast<std::size_t>(element_count(box.extent)) * element_bytes;
    };
    CHECK(to.bytes.size() == bytes_of(to.box) && from.bytes.size() == bytes_of(from.box),
          "{} bytes for {}, {} for {}", to.bytes.size(), to_string(to.box), from.bytes.size(),
          to_string(from.box));
    CHECK(intersection(what, to.box) == what && intersection(what, from.box) == what,
          "{} of {} to {}", to_string(what), to_string(from.box), to_string(to.box));
    const std::int64_t row = what.extent.empty() ? 1 : what.extent.back();
    const std::size_t row_bytes = static_cast<std::size_t>(row) * element_bytes;
    Shape index = what.start;
    do {
        std::memcpy(to.bytes.data() + position(to.box, index) * element_bytes,
                    from.bytes.data() + position(from.box, index) * element_bytes, row_bytes);
    } while (!index.empty() && next_row(index, what));
}

std::vector<Box> cut(const Box& box, std::int64_t elements_max) {
    CHECK(elements_max > 0, "pieces of {} elements", elements_max);
    std::vector<Box> pieces;
    cut_from(0, box, elements_max, pieces);
    return pieces;
}

}  // namespace gruca::checkpoint
