// A struct of settings declared once gives a reader, a writer and its own description.

#include "spec/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gruca::spec {
namespace {

using testing::HasSubstr;

struct Oven {
    int degrees = 180;
    std::int64_t grams = 500;
    double minutes = 12.5;
    bool fan = false;
    std::string dish = "bread";

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("degrees", degrees, "Heat.");
        visit("grams", grams, "Weight.");
        visit("minutes", minutes, "Time.");
        visit("fan", fan, "Moves the air.");
        visit("dish", dish, "What is in it.");
    }
};

std::string message_of(std::string_view key, std::string_view text) {
    try {
        Oven oven;
        read_field(oven, key, text);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        return error.message();
    }
    return "nothing was thrown";
}

TEST(Fields, what_was_written_reads_back) {
    Oven oven{.degrees = 220, .grams = 1ll << 40, .minutes = 0.1, .fan = true, .dish = "12"};
    Oven again;
    read_fields(again, Json::parse(write_fields(oven).dump()));
    EXPECT_EQ(write_fields(again), write_fields(oven));
    EXPECT_EQ(again.dish, "12");
}

TEST(Fields, values_may_be_strings_as_hyperparameters_are) {
    Oven oven;
    read_fields(oven, Json::parse(R"({"degrees":"-3","minutes":"1e-3","fan":"True","dish":""})"));
    EXPECT_EQ(oven.degrees, -3);
    EXPECT_EQ(oven.minutes, 1e-3);
    EXPECT_TRUE(oven.fan);
    EXPECT_EQ(oven.dish, "");
}

TEST(Fields, a_value_of_the_wrong_kind_names_key_and_text) {
    for (const auto& [key, text] :
         std::vector<std::pair<std::string, std::string>>{{"degrees", "hot"},
                                                          {"degrees", ""},
                                                          {"degrees", "3.5"},
                                                          {"degrees", "4294967296"},
                                                          {"grams", "99999999999999999999"},
                                                          {"minutes", "1,5"},
                                                          {"minutes", "nan"},
                                                          {"minutes", "inf"},
                                                          {"fan", "yes"}}) {
        EXPECT_THAT(message_of(key, text), HasSubstr(key + " must be ")) << text;
        EXPECT_THAT(message_of(key, text), HasSubstr("'" + text + "'"));
    }
}

TEST(Fields, an_unknown_key_names_the_nearest_known_one) {
    EXPECT_THAT(message_of("degree", "1"), HasSubstr("did you mean 'degrees'?"));
    EXPECT_THAT(message_of("temperature_of_the_room", "1"),
                HasSubstr("there is no setting 'temperature_of_the_room'"));
}

TEST(Fields, facts_tell_kind_and_default) {
    const auto facts = field_facts(Oven());
    ASSERT_EQ(facts.size(), 5u);
    EXPECT_EQ(facts[0].kind, "int");
    EXPECT_EQ(facts[2].kind, "number");
    EXPECT_EQ(facts[2].by_default, "12.5");
    EXPECT_EQ(facts[3].by_default, "false");
    EXPECT_EQ(facts[4].by_default, "bread");
    EXPECT_EQ(facts[4].help, "What is in it.");
}

}  // namespace
}  // namespace gruca::spec
