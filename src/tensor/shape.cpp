#include "tensor/shape.h"

#include "base/error.h"

namespace gruca::tensor {
namespace {

constexpr std::int64_t kElementsMax = std::int64_t{1} << 62;

}  // namespace

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0) {
            throw Error(ErrorCode::invalid_argument,
                        "negative extent in shape " + to_string(shape));
        }
        if (extent != 0 && count > kElementsMax / extent) {
            throw Error(ErrorCode::invalid_argument, "shape is too large: " + to_string(shape));
        }
        count *= extent;
    }
    return count;
}

std::string to_string(const Shape& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(shape[i]);
    }
    return text + "]";
}

}  // namespace gruca::tensor
