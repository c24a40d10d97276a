#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/boundary.h"
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

TEST(Json, nothing_hides_behind_a_nul) {
    using namespace std::string_literals;
    for (const std::string& text : {"{\"a\":1}\0{\"a\":2}"s, "1\0"s, "\0"s, "\"a\0b\""s}) {
        EXPECT_THROW(Json::parse(text), Error) << text;
    }
    EXPECT_EQ(Json::parse(R"("a\u0000b")").as_string(), "a\0b"s);
}

TEST(Json, half_a_surrogate_is_refused_and_a_whole_one_is_a_character) {
    for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800\ud800")", R"("\ud800x")"}) {
        EXPECT_THROW(Json::parse(text), Error) << text;
    }
    EXPECT_EQ(Json::parse(R"("\ud83d\ude00")").as_string(), "\xF0\x9F\x98\x80");
}

TEST(Json, numbers_are_exact_or_the_nearest_double_or_refused) {
    EXPECT_EQ(Json::parse("9223372036854775807").as_int(), INT64_MAX);
    EXPECT_EQ(Json::parse("-9223372036854775808").as_int(), INT64_MIN);
    EXPECT_EQ(Json::parse("18446744073709551616").as_double(), 18446744073709551616.0);
    EXPECT_THROW(Json::parse("9223372036854775808").as_int(), Error);
    EXPECT_EQ(Json::parse("1e-999").as_double(), 0.0);
    for (const char* text : {"1e999", "-1e999", "+1", ".5", "1.", "0x1", "NaN", "Infinity"}) {
        EXPECT_THROW(Json::parse(text), Error) << text;
    }
}

TEST(Json, a_fault_is_told_in_our_words) {
    const auto fault_of = [](std::string_view text) {
        const auto error = run_guarded([&] { Json::parse(text); });
        return error ? error->message() : "";
    };
    EXPECT_EQ(fault_of("{\"a\":1"), "not JSON, at byte 7: it ends before its value does");
    EXPECT_EQ(fault_of("\"abc"), "not JSON, at byte 5: it ends before its value does");
    EXPECT_EQ(fault_of("[1,]"), "not JSON, at byte 4: unexpected character");
    EXPECT_EQ(fault_of("[1e999]"), "not JSON, at byte 6: a number that no double can hold");
    EXPECT_EQ(fault_of("\"\xff\""), "not JSON, at byte 2: a text that is not UTF-8");
}

TEST(Json, depth_is_limited) {
    const std::string fine(Json::kDepthMax, '['), deep(Json::kDepthMax + 1, '[');
    EXPECT_NO_THROW(Json::parse(fine + std::string(Json::kDepthMax, ']')));
    EXPECT_THROW(Json::parse(deep + std::string(Json::kDepthMax + 1, ']')), Error);
    EXPECT_THROW(Json::parse(std::string(16u << 20, '[')), Error);
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
