// tensor/shape.h
//
// The extents of a tensor, outermost first; the last one is contiguous. Empty is a scalar.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gruca::tensor {

using Shape = std::vector<std::int64_t>;

// Shapes come from files: throws invalid_argument for a negative extent or more than 2^62 elements.
std::int64_t element_count(const Shape& shape);

std::string to_string(const Shape& shape);  // "[2, 3]"

}  // namespace gruca::tensor
