// Frequencies of rotary positions, against values worked out by hand from the formulas.
#include "model/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace gruca::model {
namespace {

spec::ModelConfig with(spec::RopeScaling scaling) {
    return {.family = spec::Family::llama,
            .layers = 1,
            .width = 64,
            .heads = 8,
            .kv_heads = 8,
            .hidden = 8,
            .context_length = 64,
            .vocabulary_size = 8,
            .rope_theta = 10000,
            .rope_scaling = scaling};
}

TEST(Rope, plain_frequencies_fall_off_with_theta) {
    EXPECT_THAT(rotary_frequencies(with({})),
                testing::Pointwise(testing::DoubleNear(1e-15), {1.0, 0.1, 0.01, 0.001}));
}

TEST(Rope, linear_scaling_slows_every_turn) {
    EXPECT_THAT(rotary_frequencies(with({.kind = spec::RopeScaling::Kind::linear, .factor = 4})),
                testing::Pointwise(testing::DoubleNear(1e-15), {0.25, 0.025, 0.0025, 0.00025}));
}

// Wavelengths are 6.28, 62.8, 628 and 6283 tokens; the original context has 400: those below 100
// stay, those above 400 are slowed down eightfold.
TEST(Rope, llama3_keeps_fast_turns_and_slows_slow_ones) {
    const spec::RopeScaling scaling{.kind = spec::RopeScaling::Kind::llama3,
                                    .factor = 8,
                                    .low_frequency_factor = 1,
                                    .high_frequency_factor = 4,
                                    .original_context_length = 400};
    EXPECT_THAT(rotary_frequencies(with(scaling)),
                testing::Pointwise(testing::DoubleNear(1e-15), {1.0, 0.1, 0.01 / 8, 0.001 / 8}));
}

TEST(Rope, llama3_blends_between_the_two) {
    const double wavelength = 2 * std::numbers::pi / 0.1;
    const spec::RopeScaling scaling{.kind = spec::RopeScaling::Kind::llama3,
                                    .factor = 2,
                                    .low_frequency_factor = 1,
                                    .high_frequency_factor = 4,
                                    .original_context_length = 100};
    const double share = (100 / wavelength - 1) / 3;
    ASSERT_GT(share, 0);
    ASSERT_LT(share, 1);
    EXPECT_NEAR(rotary_frequencies(with(scaling))[1], (1 - share) * 0.05 + share * 0.1, 1e-15);
}

}  // namespace
}  // namespace gruca::model
