#include "base/text.h"

#include <gtest/gtest.h>

namespace gruca {
namespace {

TEST(Text, split_keeps_empty_parts) {
    EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
    EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Text, base64_goes_both_ways_and_refuses_rubbish) {
    for (const char* text : {"", "a", "ab", "abc", "abcd"}) {
        EXPECT_EQ(text_of(*from_base64(base64(bytes_of(text)))), text);
    }
    EXPECT_EQ(base64(bytes_of("ab")), "YWI=");
    for (const char* text : {"YWI", "YW=I", "=WI=", "YWI*"})
        EXPECT_FALSE(from_base64(text)) << text;
}

TEST(Text, malformed_utf8_is_found_and_repaired) {
    EXPECT_TRUE(
        is_utf8("gru\xC4\x8D"
                "a"));
    for (const char* text : {"\x80", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
        EXPECT_FALSE(is_utf8(text));
    }
    EXPECT_EQ(repair_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
}

TEST(Text, the_nearest_word_is_offered_only_when_near) {
    const std::vector<std::string> known = {"learning_rate", "max_steps"};
    EXPECT_EQ(nearest("learning_rat", known), "learning_rate");
    EXPECT_EQ(nearest("something", known), std::nullopt);
}

TEST(Text, numbers_must_be_whole) {
    EXPECT_EQ(parse_int("12"), 12);
    EXPECT_FALSE(parse_int("12x"));
    EXPECT_FALSE(parse_int(""));
    EXPECT_EQ(parse_double("3e-4"), 3e-4);
    EXPECT_FALSE(parse_double("0.1.2"));
}

}  // namespace
}  // namespace gruca
