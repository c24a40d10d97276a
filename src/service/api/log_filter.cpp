#include "service/api/log_filter.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace gruca::service::api {
namespace {

// Takes one term off the front: a word, or what stands between quotes.
std::string take_term(std::string_view& pattern) {
    if (pattern.starts_with('"')) {
        const std::size_t end = pattern.find('"', 1);
        if (end == std::string_view::npos) {
            throw Error(ErrorCode::invalid_argument,
                        "Invalid filter pattern: a quotation mark is not closed");
        }
        const std::string term(pattern.substr(1, end - 1));
        pattern.remove_prefix(end + 1);
        return term;
    }
    const std::size_t end = std::min(pattern.find_first_of(" \t"), pattern.size());
    const std::string term(pattern.substr(0, end));
    pattern.remove_prefix(end);
    return term;
}

}  // namespace

LogFilter::LogFilter(std::string_view pattern) {
    pattern = trim(pattern);
    if (pattern.starts_with('{') || pattern.starts_with('[') || pattern.starts_with('%')) {
        throw Error(ErrorCode::invalid_argument,
                    "Invalid filter pattern: gruca looks for terms and quoted texts only, not for "
                    "JSON fields, columns or regular expressions");
    }
    while (!(pattern = trim(pattern)).empty()) {
        std::vector<std::string>* terms = &all_;
        if (pattern.front() == '?' || pattern.front() == '-') {
            terms = pattern.front() == '?' ? &any_ : &none_;
            pattern.remove_prefix(1);
        }
        if (pattern.empty()) break;
        terms->push_back(take_term(pattern));
    }
}

bool LogFilter::matches(std::string_view message) const {
    const auto occurs = [&](const std::string& term) {
        return message.find(term) != std::string_view::npos;
    };
    return std::all_of(all_.begin(), all_.end(), occurs) &&
           (any_.empty() || std::any_of(any_.begin(), any_.end(), occurs)) &&
           std::none_of(none_.begin(), none_.end(), occurs);
}

}  // namespace gruca::service::api
