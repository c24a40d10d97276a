// What the fuzz targets share. A target is one function that takes bytes for the input of a decoder
// and CHECKs what must hold of any input: it is refused with our Error, or what came out has the
// decoder's promises. libFuzzer looks for inputs (`./dev fuzz`), and replay.cpp runs the kept ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gruca::fuzz {

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

// Whether `decode` took its input. An input that is wrong is the caller's fault or damage, never a
// defect of ours; any other exception passes through and ends the target.
template <class Decode>
bool takes(Decode&& decode) {
    try {
        decode();
        return true;
    } catch (const Error& error) {
        CHECK(error.code() != ErrorCode::internal, "refused as a defect: {}", error.what());
        return false;
    }
}

// Takes one byte off the front, for a choice; 0 when there is none.
inline std::uint8_t take_byte(std::string_view& text) {
    if (text.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(text.front());
    text.remove_prefix(1);
    return byte;
}

}  // namespace gruca::fuzz
