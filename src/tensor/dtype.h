// tensor/dtype.h
//
// What an element is. Names are those of the safetensors format: "F32", "F64", "BF16",
// "F16".
#pragma once

#include <cstddef>
#include <string_view>

namespace gruca::tensor {

enum class Dtype { f32, f64, bf16, f16 };

std::size_t bytes_of(Dtype dtype);
std::string_view name(Dtype dtype);
Dtype parse_dtype(std::string_view name);  // Throws invalid_argument for an unknown name.

template <class Real>
inline constexpr Dtype dtype_of = Dtype::f32;
template <>
inline constexpr Dtype dtype_of<double> = Dtype::f64;

}  // namespace gruca::tensor
