#include "tensor/dtype.h"

#include <array>
#include <string>

#include "base/error.h"

namespace gruca::tensor {
namespace {

struct Row {
    std::string_view name;
    std::size_t bytes;
};

constexpr std::array kTable = {Row{"F32", 4}, Row{"F64", 8}, Row{"BF16", 2}, Row{"F16", 2}};

}  // namespace

std::size_t bytes_of(Dtype dtype) {
    return kTable[static_cast<std::size_t>(dtype)].bytes;
}

std::string_view name(Dtype dtype) {
    return kTable[static_cast<std::size_t>(dtype)].name;
}

Dtype parse_dtype(std::string_view name) {
    for (std::size_t i = 0; i < kTable.size(); ++i) {
        if (kTable[i].name == name) return static_cast<Dtype>(i);
    }
    throw Error(ErrorCode::invalid_argument,
                "unknown element type, expected F32, F64, BF16 or F16: " + std::string(name));
}

}  // namespace gruca::tensor
