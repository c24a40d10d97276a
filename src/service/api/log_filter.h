// service/api/log_filter.h
//
// CloudWatch's filter patterns for lines of text: every plain term must occur, of the terms with
// '?' at least one, a term with '-' must not. A term is a word, "quoted text", or a regular
// expression between percent signs, which is looked for anywhere in the line. Expressions have
// CloudWatch's own limits (two a pattern, no groups, ASCII) and take time linear in the line.
// Patterns of JSON fields ("{ }") and columns ("[ ]") are refused by name.
//
// Immutable and thread-safe once made.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace gruca::service::api {

class LogFilter {
  public:
    explicit LogFilter(std::string_view pattern);  // Throws invalid_argument.
    ~LogFilter();
    LogFilter(const LogFilter&) = delete;
    LogFilter& operator=(const LogFilter&) = delete;

    bool matches(std::string_view message) const;

  private:
    struct Term {
        std::string text;
        std::unique_ptr<re2::RE2> expression;  // Instead of the text, for a term in percent signs.

        bool occurs_in(std::string_view message) const;
    };
    static Term take_term(std::string_view& pattern);

    std::vector<Term> all_;
    std::vector<Term> any_;
    std::vector<Term> none_;
};

}  // namespace gruca::service::api
