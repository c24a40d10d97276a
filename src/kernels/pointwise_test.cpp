// The operations without a backward pass: optimizer step, sums.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/ops.h"
#include "kernels/ops_cases.h"

namespace gruca::kernels::testing {
namespace {

template <class Real>
struct Adam {
    Values<Real> weight, first, second, gradient;

    explicit Adam(std::int64_t count)
        : weight(random_values<Real>(count, 1)),
          first(static_cast<std::size_t>(count)),
          second(static_cast<std::size_t>(count)),
          gradient(random_values<Real>(count, 2)) {}

    void step(Ops<Real>& ops, std::int64_t number) {
        ops.adamw(AdamwStep<Real>{.weight = weight.data(),
                                  .first_moment = first.data(),
                                  .second_moment = second.data(),
                                  .gradient = gradient.data(),
                                  .count = static_cast<std::int64_t>(weight.size()),
                                  .step = number,
                                  .learning_rate = 1e-2,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .epsilon = 1e-8,
                                  .weight_decay = 0.1,
                                  .gradient_scale = 0.5});
    }
};

TEST(Adamw, the_first_step_moves_by_the_rate_against_the_sign_of_the_gradient_after_decay) {
    Adam<double> adam(9);
    const Adam<double> before(9);
    adam.step(*make_reference_ops<double>(), 1);
    for (std::size_t i = 0; i < adam.weight.size(); ++i) {
        const double sign = before.gradient[i] > 0 ? 1 : -1;
        EXPECT_NEAR(adam.weight[i], before.weight[i] * (1 - 1e-2 * 0.1) - 1e-2 * sign, 1e-8);
    }
}

TEST(Adamw, the_cpu_follows_the_reference_over_many_steps) {
    Adam<float> fast(1003);
    Adam<double> exact(1003);
    const auto cpu = make_cpu_ops();
    const auto reference = make_reference_ops<double>();
    for (int number = 1; number <= 50; ++number) {
        fast.step(*cpu, number);
        exact.step(*reference, number);
    }
    for (std::size_t i = 0; i < fast.weight.size(); ++i) {
        EXPECT_NEAR(double{fast.weight[i]}, exact.weight[i], 1e-5);
        EXPECT_NEAR(double{fast.second[i]}, exact.second[i], 1e-6 * exact.second[i]);
    }
}

TEST(SumOfSquares, adds_to_the_sum_in_double_at_every_size) {
    const auto cpu = make_cpu_ops();
    for (const std::int64_t count : {0, 1, 7, 64, 65, 1000, 70001}) {
        const auto x = random_values<float>(count, 3);
        double expected = 2;
        for (const float value : x) expected += double{value} * double{value};
        double actual = 2;
        cpu->sum_of_squares(SumOfSquares<float>{.sum = &actual, .x = x.data(), .count = count});
        EXPECT_NEAR(actual, expected, 1e-13 * expected) << count;
    }
}

TEST(SumOfSquares, one_nan_is_seen) {
    auto x = random_values<float>(5000, 3);
    x[4321] = std::numeric_limits<float>::quiet_NaN();
    double sum = 0;
    make_cpu_ops()->sum_of_squares(SumOfSquares<float>{.sum = &sum, .x = x.data(), .count = 5000});
    EXPECT_TRUE(std::isnan(sum));
}

TEST(Pointwise, adding_works_in_place_at_every_size) {
    const auto cpu = make_cpu_ops();
    for (const std::int64_t count : {0, 1, 15, 65536 + 3}) {
        const auto a = random_values<float>(count, 4);
        const auto b = random_values<float>(count, 5);
        auto y = a;
        cpu->add(Add<float>{.y = y.data(), .a = y.data(), .b = b.data(), .count = count});
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], a[i] + b[i]);
    }
}

}  // namespace
}  // namespace gruca::kernels::testing
