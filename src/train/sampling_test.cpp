#include "train/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"

namespace gruca::train {
namespace {

TEST(Sampling, without_temperature_takes_the_best_and_the_first_of_equals) {
    const std::vector<float> logits = {1, 3, 2, 3};
    EXPECT_EQ(choose_token(logits, {.temperature = 0, .top_k = 0}, 0.99), 1);
    EXPECT_EQ(choose_token(logits, {.temperature = 5, .top_k = 1}, 0.99), 1);
}

TEST(Sampling, chances_are_those_of_the_softmax) {
    const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(5.0f)};
    std::vector<int> times(3);
    for (int i = 0; i < 800; ++i) {
        const double chance = (i + 0.5) / 800;
        ++times[static_cast<std::size_t>(
            choose_token(logits, {.temperature = 1, .top_k = 0}, chance))];
    }
    EXPECT_EQ(times, (std::vector<int>{100, 200, 500}));
}

TEST(Sampling, only_the_k_best_are_eligible) {
    const std::vector<float> logits = {0, 1, 2, 3};
    for (double chance = 0; chance < 1; chance += 0.05) {
        EXPECT_GE(choose_token(logits, {.temperature = 9, .top_k = 2}, chance), 2);
    }
}

TEST(Sampling, a_high_temperature_flattens) {
    const std::vector<float> logits = {0, 8};
    EXPECT_EQ(choose_token(logits, {.temperature = 1, .top_k = 0}, 0.6), 1);
    EXPECT_EQ(choose_token(logits, {.temperature = 100, .top_k = 0}, 0.6), 0);
}

TEST(Sampling, scores_that_are_no_numbers_are_an_error_and_not_a_text) {
    const float logits[] = {1, std::nanf(""), 2};
    for (const double temperature : {0.0, 1.0}) {
        const SamplingOptions options{.temperature = temperature, .top_k = 2};
        EXPECT_THROW(choose_token(logits, options, 0.5), Error);
    }
}

}  // namespace
}  // namespace gruca::train
