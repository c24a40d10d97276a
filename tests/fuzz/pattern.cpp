// The API's patterns match any bytes in linear time, and short plain texts as std::regex does.

#include "spec/pattern.h"

#include <array>
#include <regex>

#include "fuzz/target.h"

namespace {

// Of the API's model, and the kind that makes backtracking take for ever.
constexpr std::array kPatterns = {
    "^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}",
    "^(https|s3)://([^/]+)/?(.*)$",
    "[a-zA-Z0-9._-]+",
    "^arn:aws[a-z-]*:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@-]+$",
    "^(a+)+$",
    "^(a|a?)*b?$",
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::vector<gruca::spec::Pattern> patterns(kPatterns.begin(), kPatterns.end());
    static const std::vector<std::regex> judges(kPatterns.begin(), kPatterns.end());
    const std::string text = gruca::fuzz::text_of(data, size);
    bool plain = text.size() <= 12;  // The judge is exponential.
    for (const char c : text) plain = plain && c >= ' ' && c < 0x7f;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        const bool matches = patterns[i].matches(text);
        if (!plain) continue;
        CHECK(matches == std::regex_match(text, judges[i]), "{} of '{}'", kPatterns[i], text);
    }
    return 0;
}
