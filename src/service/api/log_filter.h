// service/api/log_filter.h
//
// The part of CloudWatch's filter patterns that looks for words: every plain term must occur, of
// the terms with '?' at least one, a term with '-' must not; "quoted text" is one term. Patterns of
// JSON fields ("{ }"), columns ("[ ]") and regular expressions ("% %") are refused by name.
//
// Immutable and thread-safe once made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gruca::service::api {

class LogFilter {
  public:
    explicit LogFilter(std::string_view pattern);

    bool matches(std::string_view message) const;

  private:
    std::vector<std::string> all_;
    std::vector<std::string> any_;
    std::vector<std::string> none_;
};

}  // namespace gruca::service::api
