// base/percent.h
//
// "%41" for a byte, as URLs and names of files have it.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gruca {

// Nothing where a '%' is not followed by two hex digits, of either case.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace gruca
