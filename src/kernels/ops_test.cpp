// Every operation in three ways. grad: the reference's backward pass against finite differences of
// its forward pass, in double. agree: the cpu kernels against the reference, with every instruction
// set this machine has. And two promises of ops.h: threads change no bit; odd calls are refused.

#include "kernels/ops.h"

#include <hwy/targets.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/ops_cases.h"

namespace gruca::kernels::testing {
namespace {

// Awkward on purpose: one row, one column, odd widths, widths around a vector and a tile, more rows
// than a block of any kernel, more keys than a block of attention, heads that share keys.
template <class Real>
std::vector<Case<Real>> small_cases() {
    return {embedding_case<Real>(2, 3, 5, 4),
            embedding_case<Real>(1, 2, 67, 3),
            layer_norm_case<Real>(1, 2, false),
            layer_norm_case<Real>(3, 7, true),
            layer_norm_case<Real>(5, 33, false),
            rms_norm_case<Real>(1, 1, false),
            rms_norm_case<Real>(3, 7, true),
            rms_norm_case<Real>(4, 40, false),
            linear_case<Real>(1, 1, 1, true, false),
            linear_case<Real>(7, 5, 3, true, true),
            linear_case<Real>(6, 16, 17, false, false),
            linear_case<Real>(13, 9, 33, true, false),
            rope_case<Real>(2, 3, 2, 2),
            rope_case<Real>(1, 5, 3, 10),
            attention_case<Real>({.b = 1, .t = 1, .h = 1, .g = 1, .d = 1}),
            attention_case<Real>({.b = 2, .t = 5, .h = 2, .g = 2, .d = 3}),
            attention_case<Real>({.b = 1, .t = 9, .h = 6, .g = 2, .d = 4}),
            attention_case<Real>({.b = 2, .t = 9, .h = 2, .g = 1, .d = 4, .window = 3}),
            attention_case<Real>({.b = 1, .t = 9, .h = 2, .g = 2, .d = 2, .document = 4}),
            attention_case<Real>({.b = 1, .t = 6, .h = 1, .g = 1, .d = 3, .window = 1}),
            gelu_case<Real>(1),
            gelu_case<Real>(37),
            swiglu_case<Real>(19),
            cross_entropy_case<Real>(1, 1),
            cross_entropy_case<Real>(5, 11)};
}

template <class Real>
std::vector<Case<Real>> larger_cases() {
    return {embedding_case<Real>(3, 70, 131, 40),
            layer_norm_case<Real>(300, 129, false),
            layer_norm_case<Real>(2, 1031, true),
            rms_norm_case<Real>(300, 129, true),
            linear_case<Real>(300, 260, 70, true, false),
            linear_case<Real>(150, 64, 1030, true, true),
            linear_case<Real>(64, 515, 48, false, false),
            linear_case<Real>(3, 300, 1500, true, false),
            rope_case<Real>(2, 65, 3, 32),
            attention_case<Real>({.b = 2, .t = 128, .h = 4, .g = 4, .d = 32}),
            attention_case<Real>({.b = 1, .t = 65, .h = 4, .g = 1, .d = 8}),
            attention_case<Real>({.b = 1, .t = 530, .h = 2, .g = 1, .d = 20}),
            attention_case<Real>({.b = 1, .t = 530, .h = 2, .g = 1, .d = 20, .window = 100}),
            attention_case<Real>({.b = 2, .t = 700, .h = 1, .g = 1, .d = 8, .document = 300}),
            attention_case<Real>(
                {.b = 1, .t = 900, .h = 1, .g = 1, .d = 8, .window = 257, .document = 511}),
            gelu_case<Real>(16384 + 5),
            swiglu_case<Real>(16384 + 5),
            cross_entropy_case<Real>(33, 1027)};
}

template <class Real>
Many<Real> inputs_of(const Case<Real>& c) {
    Many<Real> inputs;
    for (const std::int64_t count : c.input_counts) {
        inputs.push_back(random_values<Real>(count, inputs.size()));
    }
    return inputs;
}

template <class Real>
Values<Real> dy_of(const Case<Real>& c, const Many<Real>& outputs) {
    auto dy = random_values<Real>(static_cast<std::int64_t>(outputs[0].size()), 99);
    if (c.same_dy) std::fill(dy.begin(), dy.end(), static_cast<Real>(0.375));
    return dy;
}

// Outputs, then gradients.
template <class Real>
Many<Real> run(const Case<Real>& c, Ops<Real>& ops) {
    const Many<Real> inputs = inputs_of(c);
    Many<Real> outputs = c.forward(ops, inputs);
    const Many<Real> gradients = c.backward(ops, inputs, outputs, dy_of(c, outputs));
    ops.finish();
    outputs.insert(outputs.end(), gradients.begin(), gradients.end());
    return outputs;
}

double loss(const Case<double>& c, Ops<double>& ops, const Many<double>& inputs) {
    const Many<double> outputs = c.forward(ops, inputs);
    const Values<double> dy = dy_of(c, outputs);
    double sum = 0;
    for (std::size_t i = 0; i < dy.size(); ++i) sum += dy[i] * outputs[0][i];
    return sum;
}

TEST(Reference, backward_is_the_derivative_of_forward) {
    constexpr double kStep = 1e-5;
    constexpr std::size_t kProbesMax = 40;  // Of each input.
    const auto ops = make_reference_ops<double>();
    for (const Case<double>& c : small_cases<double>()) {
        Many<double> inputs = inputs_of(c);
        const Many<double> outputs = c.forward(*ops, inputs);
        const Many<double> gradients = c.backward(*ops, inputs, outputs, dy_of(c, outputs));
        ASSERT_EQ(gradients.size(), inputs.size());
        for (std::size_t input = 0; input < inputs.size(); ++input) {
            const std::size_t stride = 1 + inputs[input].size() / kProbesMax;
            for (std::size_t i = 0; i < inputs[input].size(); i += stride) {
                double& x = inputs[input][i];
                const double kept = x;
                x = kept + kStep;
                const double above = loss(c, *ops, inputs);
                x = kept - kStep;
                const double below = loss(c, *ops, inputs);
                x = kept;
                const double expected = (above - below) / (2 * kStep);
                EXPECT_NEAR(gradients[input][i], expected, 1e-7 * (1 + std::abs(expected)))
                    << c.name << ", input " << input << ", element " << i;
            }
        }
    }
}

// Relative to the largest value of the buffer, or to 0.1: where sums cancel no float is exact.
double difference(const Values<float>& actual, const Values<float>& expected) {
    double largest = 0;
    double scale = 0.1;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double apart = std::abs(double{actual[i]} - double{expected[i]});
        largest =
            std::isnan(apart) ? std::numeric_limits<double>::infinity() : std::max(largest, apart);
        scale = std::max(scale, std::abs(double{expected[i]}));
    }
    return largest / scale;
}

void expect_agreement() {
    constexpr double kTolerance = 4e-6;
    const auto reference = make_reference_ops<float>();
    const auto cpu = make_cpu_ops();
    std::vector<Case<float>> cases = small_cases<float>();
    for (auto& c : larger_cases<float>()) cases.push_back(c);
    for (const Case<float>& c : cases) {
        const Many<float> expected = run(c, *reference);
        const Many<float> actual = run(c, *cpu);
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i) {
            EXPECT_LT(difference(actual[i], expected[i]), kTolerance) << c.name << ", buffer " << i;
        }
    }
}

class Cpu : public ::testing::Test {
  protected:
    ~Cpu() override {
        use_targets(0);
        omp_set_num_threads(threads_before);
    }

    // Zero: whatever the processor has.
    static void use_targets(std::int64_t targets) {
        hwy::SetSupportedTargetsForTest(targets);
        hwy::GetChosenTarget().DeInit();
    }

    const int threads_before = omp_get_max_threads();
};

TEST_F(Cpu, agrees_with_the_reference_using_avx512) {
    if (!(hwy::SupportedTargets() & HWY_AVX3)) GTEST_SKIP() << "this processor has no AVX-512";
    use_targets(HWY_AVX3);
    expect_agreement();
}

TEST_F(Cpu, agrees_with_the_reference_using_avx2) {
    if (!(hwy::SupportedTargets() & HWY_AVX2)) GTEST_SKIP() << "this processor has no AVX2";
    use_targets(HWY_AVX2);
    expect_agreement();
}

TEST_F(Cpu, agrees_with_the_reference_on_an_old_processor) {
    use_targets(HWY_SCALAR);
    expect_agreement();
}

bool same_bits(const Values<float>& a, const Values<float>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
        return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
    });
}

TEST_F(Cpu, the_number_of_threads_changes_no_bit) {
    const auto cpu = make_cpu_ops();
    for (const Case<float>& c : larger_cases<float>()) {
        omp_set_num_threads(1);
        const Many<float> alone = run(c, *cpu);
        for (const int threads : {2, 3}) {
            omp_set_num_threads(threads);
            const Many<float> together = run(c, *cpu);
            for (std::size_t i = 0; i < alone.size(); ++i) {
                EXPECT_TRUE(same_bits(alone[i], together[i]))
                    << c.name << ", buffer " << i << ", threads " << threads;
            }
        }
    }
}

TEST_F(Cpu, embedding_without_positions_copies_rows) {
    const Values<float> weight = {1, 2, 3, 4, 5, 6};
    const std::vector<std::int32_t> tokens = {2, 0};
    Values<float> y(4);
    make_cpu_ops()->embedding(EmbeddingForward<float>{.y_nc = y.data(),
                                                      .token_n = tokens.data(),
                                                      .token_weight_vc = weight.data(),
                                                      .b = 1,
                                                      .t = 2,
                                                      .c = 2,
                                                      .v = 3});
    EXPECT_EQ(y, (Values<float>{5, 6, 1, 2}));
}

TEST_F(Cpu, extreme_logits_give_finite_losses_and_gradients) {
    Values<float> logits = {1e4f, -1e4f, 0, -1e4f, 1e4f, 1e4f};
    const std::vector<std::int32_t> targets = {1, 2};
    Values<float> loss_n(2);
    double loss_sum = 0;
    std::int64_t count = 0;
    make_cpu_ops()->cross_entropy(CrossEntropy<float>{.loss_n = loss_n.data(),
                                                      .dlogits_nv = logits.data(),
                                                      .loss_sum = &loss_sum,
                                                      .target_count = &count,
                                                      .logits_nv = logits.data(),
                                                      .target_n = targets.data(),
                                                      .n = 2,
                                                      .v = 3,
                                                      .dloss = 1});
    EXPECT_EQ(loss_n[0], 2e4f);
    EXPECT_NEAR(loss_n[1], std::log(2.0f), 1e-6);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(logits, (Values<float>{1, -1, 0, 0, 0.5f, -0.5f}));
}

TEST_F(Cpu, what_is_not_a_number_does_not_become_a_probability) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const auto cpu = make_cpu_ops();
    const Case<float> loss = cross_entropy_case<float>(1, 40);
    const Case<float> attention = attention_case<float>({.b = 1, .t = 12, .h = 1, .g = 1, .d = 4});
    for (const std::size_t at : {0u, 17u, 39u}) {
        Many<float> logits = inputs_of(loss);
        logits[0][at] = kNan;
        EXPECT_TRUE(std::isnan(loss.forward(*cpu, logits)[0][0])) << at;
    }
    Many<float> qkv = inputs_of(attention);
    constexpr std::size_t kKeyOfSecondRow = 12 + 4;
    qkv[0][kKeyOfSecondRow] = kNan;
    const Values<float> out = attention.forward(*cpu, qkv)[0];
    EXPECT_FALSE(std::isnan(out[0]));
    for (std::size_t i = 4; i < out.size(); ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
}

// The gates of both activations are sigmoids, and exp(-x) of a large -x leaves what a float can
// hold.
TEST_F(Cpu, activations_of_large_inputs_are_those_of_the_reference) {
    Values<float> x;
    for (float size = 0.5f; size < 1e15f; size *= 1.01f) {
        x.push_back(size);
        x.push_back(-size);
    }
    const auto count = static_cast<std::int64_t>(x.size());
    const Values<float> ones(x.size(), 1);
    const auto cpu = make_cpu_ops(), reference = make_reference_ops<float>();
    const auto results = [&](Ops<float>& ops) {
        std::vector<Values<float>> y(5, Values<float>(x.size()));
        ops.gelu(GeluForward<float>{.y = y[0].data(), .x = x.data(), .count = count});
        ops.gelu(GeluBackward<float>{
            .dx = y[1].data(), .dy = ones.data(), .x = x.data(), .count = count});
        ops.swiglu(SwigluForward<float>{
            .y = y[2].data(), .gate = x.data(), .up = ones.data(), .count = count});
        ops.swiglu(SwigluBackward<float>{.dgate = y[3].data(),
                                         .dup = y[4].data(),
                                         .dy = ones.data(),
                                         .gate = x.data(),
                                         .up = ones.data(),
                                         .count = count});
        return y;
    };
    const auto actual = results(*cpu), expected = results(*reference);
    for (std::size_t which = 0; which < actual.size(); ++which) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            ASSERT_NEAR(actual[which][i], expected[which][i], 2e-6f * std::max(1.0f, x[i]))
                << which << " of " << x[i];
        }
    }
}

TEST_F(Cpu, a_token_outside_the_vocabulary_is_a_bug_of_the_caller) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // OpenMP's threads are about.
    const Values<float> weight(6);
    const std::vector<std::int32_t> tokens = {3};
    Values<float> y(2);
    EXPECT_DEATH(make_cpu_ops()->embedding(EmbeddingForward<float>{.y_nc = y.data(),
                                                                   .token_n = tokens.data(),
                                                                   .token_weight_vc = weight.data(),
                                                                   .b = 1,
                                                                   .t = 1,
                                                                   .c = 2,
                                                                   .v = 3}),
                 "token 3");
}

}  // namespace
}  // namespace gruca::kernels::testing
