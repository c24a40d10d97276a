#include "base/percent.h"

#include <gtest/gtest.h>

namespace gruca {
namespace {

TEST(Percent, a_byte_is_written_as_two_hex_digits_of_either_case) {
    EXPECT_EQ(percent_decoded("a%2Fb%2f%41"), "a/b/A");
    EXPECT_EQ(percent_decoded("%ff%00"), std::string("\xff\0", 2));
    EXPECT_EQ(percent_decoded(""), "");
    EXPECT_EQ(percent_decoded("a+b"), "a+b");
}

TEST(Percent, anything_else_behind_a_percent_is_nothing) {
    for (const char* text : {"%", "%4", "a%", "%zz", "%4g", "%%41", "% 41"}) {
        EXPECT_FALSE(percent_decoded(text)) << text;
    }
}

}  // namespace
}  // namespace gruca
