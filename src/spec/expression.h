// spec/expression.h
//
// A regular expression of the dialect in spec/pattern.h, read into a tree.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "spec/pattern.h"

namespace gruca::spec {

constexpr std::size_t kUnbounded = static_cast<std::size_t>(-1);

// An expression as a tree: `parts` in sequence, or alternatives of it, repeated min..max times.
struct Expression {
    enum class Kind { set, sequence, alternatives, repeat } kind;
    Pattern::Set set = {};
    std::vector<Expression> parts = {};
    std::size_t min = 1;
    std::size_t max = 1;
};

// What is not of the dialect is a bug and aborts.
Expression parse_expression(std::string_view text);

}  // namespace gruca::spec
