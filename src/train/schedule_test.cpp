#include "train/schedule.h"

#include <gtest/gtest.h>

namespace gruca::train {
namespace {

spec::TrainerSpec a_spec() {
    spec::TrainerSpec spec;
    spec.learning_rate = 1e-3;
    spec.min_learning_rate = 1e-4;
    spec.warmup_steps = 10;
    spec.max_steps = 110;
    return spec;
}

TEST(Schedule, rises_to_the_peak_and_falls_to_the_minimum) {
    const spec::TrainerSpec spec = a_spec();
    EXPECT_DOUBLE_EQ(learning_rate(spec, 1), 1e-4);
    EXPECT_DOUBLE_EQ(learning_rate(spec, 10), 1e-3);
    EXPECT_DOUBLE_EQ(learning_rate(spec, 60), 5.5e-4);
    EXPECT_DOUBLE_EQ(learning_rate(spec, 110), 1e-4);
    for (int update = 11; update <= 110; ++update) {
        EXPECT_LT(learning_rate(spec, update), learning_rate(spec, update - 1));
    }
}

TEST(Schedule, stays_at_the_minimum_beyond_the_end) {
    EXPECT_DOUBLE_EQ(learning_rate(a_spec(), 500), 1e-4);
}

TEST(Schedule, without_warm_up_begins_near_the_peak) {
    spec::TrainerSpec spec = a_spec();
    spec.warmup_steps = 0;
    EXPECT_NEAR(learning_rate(spec, 1), 1e-3, 1e-6);
    spec.warmup_steps = spec.max_steps = 1;
    EXPECT_DOUBLE_EQ(learning_rate(spec, 1), 1e-3);
}

}  // namespace
}  // namespace gruca::train
