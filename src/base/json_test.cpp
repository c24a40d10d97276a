#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace gruca {
namespace {

TEST(Json, keeps_the_order_of_members_and_the_exact_numbers) {
    const std::string text = R"({"z":1,"a":[true,null,"x\n"],"d":0.1,"big":9007199254740993})";
    EXPECT_EQ(Json::parse(text).dump(), text);
    EXPECT_EQ(Json::parse(text).at("big").as_int(), 9007199254740993);
}

TEST(Json, a_negative_zero_keeps_its_sign) {
    EXPECT_TRUE(std::signbit(Json::parse(Json(-0.0).dump()).as_double()));
}

TEST(Json, null_members_count_as_absent) {
    const Json value = Json::parse(R"({"a":null})");
    EXPECT_EQ(value.find("a"), nullptr);
    EXPECT_EQ(value.get_string("a", "default"), "default");
    EXPECT_THROW(value.at("a"), Error);
}

TEST(Json, of_two_members_with_one_name_the_last_counts) {
    EXPECT_EQ(Json::parse(R"({"a":1,"b":2,"a":3})").dump(), R"({"a":3,"b":2})");
}

TEST(Json, wrong_kinds_are_refused) {
    const Json value = Json::parse(R"({"n":1.5,"s":"1"})");
    EXPECT_THROW(value.at("n").as_int(), Error);
    EXPECT_THROW(value.at("s").as_int(), Error);
    EXPECT_THROW(value.as_array(), Error);
    EXPECT_EQ(Json(3.0).as_int(), 3);
}

TEST(Json, malformed_text_is_refused) {
    for (const char* text : {"", "{", "[1,]", "{\"a\":1}x", "\"\xff\"", "nul", "01"}) {
        EXPECT_THROW(Json::parse(text), Error) << text;
    }
}

TEST(Json, depth_is_limited) {
    const std::string fine(Json::kDepthMax, '['), deep(Json::kDepthMax + 1, '[');
    EXPECT_NO_THROW(Json::parse(fine + std::string(Json::kDepthMax, ']')));
    EXPECT_THROW(Json::parse(deep + std::string(Json::kDepthMax + 1, ']')), Error);
}

TEST(Json, not_a_number_travels_as_aws_writes_it) {
    EXPECT_EQ(Json(std::nan("")).dump(), "\"NaN\"");
    EXPECT_TRUE(std::isnan(Json::parse("\"NaN\"").as_double()));
}

TEST(Json, control_characters_are_escaped) {
    EXPECT_EQ(Json(std::string("a\x01\"\\")).dump(), R"("a\u0001\"\\")");
}

}  // namespace
}  // namespace gruca
