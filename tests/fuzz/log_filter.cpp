// Patterns that lines of logs are looked through with: a line of the pattern, then a line to look
// at. Terms do what they say, one more term only narrows, and no expression takes long.

#include "service/api/log_filter.h"

#include "fuzz/target.h"

using gruca::service::api::LogFilter;

namespace {

std::string quoted(const std::string& text) {
    return '"' + text + '"';
}

bool occurs(const std::string& pattern, const std::string& line) {
    return LogFilter(pattern).matches(line);
}

void check_pattern(const std::string& pattern, const std::string& line) {
    const bool matches = occurs(pattern, line);
    // A word that the line cannot have, and one that it has.
    const std::string absent = quoted(line.substr(0, line.find('"')) + "!");
    CHECK(occurs(pattern + " -\"\"", line) == false, "every line has the empty text: {}", pattern);
    CHECK(occurs(pattern + " \"\"", line) == matches, "{}", pattern);
    if (!occurs(absent, line)) {
        CHECK(!occurs(pattern + " " + absent, line), "a term that is not there: {}", pattern);
        CHECK(occurs(pattern + " -" + absent, line) == matches, "{}", pattern);
    }
}

void check_expression(const std::string& pattern, const std::string& line) {
    if (pattern.find_first_of("% \t\"") != std::string::npos) return;
    const std::string term = '%' + pattern + '%';
    CHECK(occurs(term, line) != occurs('-' + term, line), "both or neither: {}", term);
    CHECK(occurs(term, line) == occurs('?' + term, line), "alone, any is all: {}", term);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string pattern = text.substr(0, end);
    const std::string line = text.substr(std::min(end + 1, text.size()));
    gruca::fuzz::takes([&] { check_pattern(pattern, line); });
    gruca::fuzz::takes([&] { check_expression(pattern, line); });
    if (pattern.find('"') == std::string::npos) {
        CHECK(occurs(quoted(pattern), line) == (line.find(pattern) != std::string::npos),
              "a quoted text is looked for as it is: {}", pattern);
    }
    return 0;
}
