#include "service/api/log_filter.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace gruca::service::api {
namespace {

constexpr std::size_t kExpressionsMax = 2;
constexpr std::int64_t kExpressionMemoryBytesMax = 4 << 20;
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kAllowedInExpressions =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_#=@/;,-^$?[]{}|\\*+.";

[[noreturn]] void refuse(const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "Invalid filter pattern: " + why);
}

// What stands up to the next `mark`, which is taken off the front with it.
std::string take_up_to(std::string_view& pattern, char mark, const char* unclosed) {
    const std::size_t end = pattern.find(mark, 1);
    if (end == std::string_view::npos) refuse(unclosed);
    std::string inner(pattern.substr(1, end - 1));
    pattern.remove_prefix(end + 1);
    return inner;
}

std::unique_ptr<re2::RE2> compile(const std::string& text) {
    const std::size_t strange = text.find_first_not_of(kAllowedInExpressions);
    if (strange != std::string::npos) {
        refuse("a regular expression may not have this character: " + text.substr(strange, 1));
    }
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_max_mem(kExpressionMemoryBytesMax);
    auto expression = std::make_unique<re2::RE2>(text, options);
    if (text.empty() || !expression->ok()) {
        refuse("not a regular expression: %" + text + "%: " + expression->error());
    }
    return expression;
}

}  // namespace

// Takes one term off the front.
LogFilter::Term LogFilter::take_term(std::string_view& pattern) {
    if (pattern.starts_with('"')) {
        return {.text = take_up_to(pattern, '"', "a quotation mark is not closed"),
                .expression = nullptr};
    }
    if (pattern.starts_with('%')) {
        Term term{.text = take_up_to(pattern, '%', "a percent sign is not closed"),
                  .expression = nullptr};
        term.expression = compile(term.text);
        return term;
    }
    const std::size_t end = std::min(pattern.find_first_of(kBlanks), pattern.size());
    Term term{.text = std::string(pattern.substr(0, end)), .expression = nullptr};
    pattern.remove_prefix(end);
    return term;
}

LogFilter::LogFilter(std::string_view pattern) {
    pattern = trim(pattern);
    if (pattern.starts_with('{') || pattern.starts_with('[')) {
        refuse(
            "gruca looks for terms, quoted texts and regular expressions only, not for JSON "
            "fields or columns");
    }
    std::size_t expressions = 0;
    while (!(pattern = trim(pattern)).empty()) {
        std::vector<Term>* terms = &all_;
        if (pattern.front() == '?' || pattern.front() == '-') {
            terms = pattern.front() == '?' ? &any_ : &none_;
            pattern.remove_prefix(1);
        }
        if (pattern.empty() || kBlanks.find(pattern.front()) != std::string_view::npos) {
            refuse("a sign must stand before a term");
        }
        terms->push_back(take_term(pattern));
        if (terms->back().expression && ++expressions > kExpressionsMax) {
            refuse("at most two regular expressions");
        }
    }
}

LogFilter::~LogFilter() = default;

bool LogFilter::Term::occurs_in(std::string_view message) const {
    if (!expression) return message.find(text) != std::string_view::npos;
    return re2::RE2::PartialMatch(re2::StringPiece(message.data(), message.size()), *expression);
}

bool LogFilter::matches(std::string_view message) const {
    const auto occurs = [&](const Term& term) { return term.occurs_in(message); };
    return std::all_of(all_.begin(), all_.end(), occurs) &&
           (any_.empty() || std::any_of(any_.begin(), any_.end(), occurs)) &&
           std::none_of(none_.begin(), none_.end(), occurs);
}

}  // namespace gruca::service::api
