// spec/pattern.h
//
// The regular expressions of the API's own model, matched as the API matches them: the whole text,
// code point by code point. Time grows with the length of the text times the size of the pattern
// and memory with the pattern alone, whatever the text is; std::regex recurses once a character.
//
// Understands what the model uses: literals, '.', [sets] with ranges and negation, \d \w \s \S,
// \p{L} \p{Z} \p{N} \p{Alnum}, groups, '|', '*', '+', '?', {m}, {m,}, {m,n}, and '^' and '$' at the
// ends. Anything else in a pattern is a bug and aborts.
//
// Beyond ASCII, \p{L}, \p{Z} and \p{N} are what the C library calls letters, blanks and digits, and
// \p{L} and \p{N} are not told apart: the model never uses one without the other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gruca::spec {

// Immutable and thread-safe once made.
class Pattern {
  public:
    explicit Pattern(std::string_view expression);

    bool matches(std::string_view utf8) const;
    const std::string& expression() const { return expression_; }

    struct Set {
        struct Range {
            char32_t first;
            char32_t last;
        };
        std::vector<Range> ranges = {};
        bool letters = false;     // \p{L}
        bool separators = false;  // \p{Z}
        bool numbers = false;     // \p{N}
        bool negated = false;

        bool contains(char32_t c) const;
    };
    enum class Op { take, fork, jump, done };
    struct Step {
        Op op;
        std::size_t to = 0;     // take: index of the set; fork, jump: a step.
        std::size_t other = 0;  // fork: the other step.
    };

  private:
    std::string expression_;
    std::vector<Set> sets_;
    std::vector<Step> steps_;
};

// The code points of well-formed UTF-8.
std::vector<char32_t> code_points(std::string_view utf8);
// As Java and the API count the length of a string: UTF-16 code units.
std::size_t utf16_length(std::string_view utf8);

}  // namespace gruca::spec
