#include "spec/pattern.h"

#include <gtest/gtest.h>

#include "spec/members.h"

namespace gruca::spec {
namespace {

struct Case {
    const char* pattern;
    const char* text;
    bool matches;
};

TEST(Pattern, matches_the_whole_text_or_not_at_all) {
    const Case cases[] = {
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"abc", "xabc", false},
        {"^abc$", "abc", true},
        {"", "", true},
        {"", "a", false},
        {"a|bc|", "bc", true},
        {"a|bc|", "", true},
        {"a|bc", "abc", false},
        {"a*", "", true},
        {"a*", "aaa", true},
        {"a+", "", false},
        {"a?b", "b", true},
        {"a?b", "aab", false},
        {"a{2}", "aa", true},
        {"a{2}", "aaa", false},
        {"a{2,}", "aaaaa", true},
        {"a{2,}", "a", false},
        {"(ab){1,2}", "abab", true},
        {"(ab){1,2}", "ababab", false},
        {"(?:a|b)+c", "ababc", true},
        {"[a-c]+", "abc", true},
        {"[a-c]+", "abd", false},
        {"[^/]+", "a/b", false},
        {"[-a]+", "a-", true},
        {"[a-]+", "a-", true},
        {"[\\-_]", "-", true},
        {"\\d{3}", "012", true},
        {"\\d{3}", "01x", false},
        {"\\w+", "a_9", true},
        {"\\w+", "a-9", false},
        {"[\\S\\s]*", "a\n\xC3\xA9 b", true},
        {"[\\S]+", "a b", false},
        {".*", "a\nb", false},
        {".*", "\xE2\x82\xAC", true},
        {".{1}", "\xF0\x9F\x98\x80", true},
        {"(a*)*", "aaaa", true},
        {"(a|a)*b", "aaaa", false},
        {"[\\p{L}\\p{Z}\\p{N}_.]*",
         "Gru\xC4\x8D"
         "a 9._",
         true},
        {"[\\p{L}\\p{Z}\\p{N}_.]*", "\xE4\xB8\xAD\xE6\x96\x87", true},
        {"[\\p{L}\\p{Z}\\p{N}_.]*",
         "a\xC2\xA0"
         "b",
         true},
        {"[\\p{L}\\p{Z}\\p{N}_.]*", "a!b", false},
        {"[\\p{L}\\p{Z}\\p{N}_.]*", "\xF0\x9F\x98\x80", false},
        {"[\\p{L}\\p{Z}\\p{N}_.]*", "a\nb", false},
    };
    for (const Case& one : cases) {
        EXPECT_EQ(Pattern(one.pattern).matches(one.text), one.matches)
            << one.pattern << " on '" << one.text << "'";
    }
}

TEST(Pattern, job_names_are_those_of_the_api) {
    const Pattern name("^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}");
    for (const char* good : {"a", "A-1", "llm---2", "0"}) EXPECT_TRUE(name.matches(good)) << good;
    for (const char* bad : {"", "-a", "a-", "a_b", "../../x", "-rf", "a\n", "a b", "\xC3\xA9"}) {
        EXPECT_FALSE(name.matches(bad)) << bad;
    }
    EXPECT_TRUE(name.matches(std::string(63, 'a')));
    EXPECT_FALSE(name.matches(std::string(64, 'a')));
}

TEST(Pattern, a_long_hostile_text_takes_linear_time_and_no_stack) {
    const Pattern evil("(a*)*(a|a)*b");
    EXPECT_FALSE(evil.matches(std::string(200'000, 'a')));
}

TEST(Pattern, length_is_counted_in_utf16_units) {
    EXPECT_EQ(utf16_length(""), 0u);
    EXPECT_EQ(utf16_length("a\xC3\xA9\xE2\x82\xAC"), 3u);
    EXPECT_EQ(utf16_length("\xF0\x9F\x98\x80"), 2u);
}

TEST(Pattern, every_pattern_of_the_table_compiles) {
    for (const MemberRow& row : create_training_job_rows()) {
        if (row.pattern.empty()) continue;
        EXPECT_EQ(Pattern(row.pattern).expression(), row.pattern);
    }
}

}  // namespace
}  // namespace gruca::spec
