// A step's result does not depend on how its batch was cut, over ranks or in time.
#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/boundary.h"
#include "train/training_fixture.h"

namespace gruca::train {
namespace {

using testing::a_tiny_spec;
using testing::CountingSamples;
using testing::Rank;

template <class Real>
struct Trained {
    std::vector<Real> weights;
    std::vector<double> losses, norms;
};

template <class Real>
Trained<Real> train(int ranks, const spec::TrainerSpec& spec) {
    Trained<Real> run;
    const CountingSamples samples;
    comm::run_ranks(ranks, [&](comm::Comm& comm) {
        Rank<Real> rank(comm, spec);
        for (std::int64_t step = 0; step < spec.max_steps; ++step) {
            const StepResult result = rank.trainer.step(samples, false);
            if (comm.rank() != 0) continue;
            run.losses.push_back(result.loss);
            run.norms.push_back(result.gradient_norm);
        }
        if (comm.rank() == 0) run.weights = rank.weights();
    });
    return run;
}

template <class Real>
void expect_near(const Trained<Real>& run, const Trained<Real>& wanted, double tolerance) {
    ASSERT_EQ(run.losses.size(), wanted.losses.size());
    for (std::size_t i = 0; i < run.losses.size(); ++i) {
        EXPECT_NEAR(run.losses[i], wanted.losses[i], tolerance * wanted.losses[i]);
        EXPECT_NEAR(run.norms[i], wanted.norms[i], tolerance * wanted.norms[i]);
    }
    ASSERT_EQ(run.weights.size(), wanted.weights.size());
    double worst = 0;
    for (std::size_t i = 0; i < run.weights.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(run.weights[i]) -
                                         static_cast<double>(wanted.weights[i])));
    }
    EXPECT_LT(worst, tolerance);
}

class StepOf : public ::testing::TestWithParam<const char*> {};

TEST_P(StepOf, two_and_four_ranks_equal_one_in_double) {
    spec::TrainerSpec spec = a_tiny_spec(GetParam());
    const Trained<double> one = train<double>(1, spec);
    EXPECT_LT(one.losses.back(), one.losses.front());
    expect_near(train<double>(2, spec), one, 1e-12);
    expect_near(train<double>(4, spec), one, 1e-12);
}

TEST_P(StepOf, accumulation_changes_nothing_in_double) {
    spec::TrainerSpec spec = a_tiny_spec(GetParam());
    spec.micro_batch_size = 8;
    const Trained<double> whole = train<double>(1, spec);
    for (const int micro : {4, 2, 1}) {
        spec.micro_batch_size = micro;
        expect_near(train<double>(1, spec), whole, 1e-12);
    }
    spec.micro_batch_size = 1;
    expect_near(train<double>(2, spec), whole, 1e-12);
}

// Adam divides by the gradient's own size, so where a gradient is almost nothing its rounding
// decides the direction; weights move by at most the rates, 1e-2, and agree to a hundredth of it.
TEST_P(StepOf, two_and_four_ranks_agree_with_one_in_float) {
    const spec::TrainerSpec spec = a_tiny_spec(GetParam());
    const Trained<float> one = train<float>(1, spec);
    expect_near(train<float>(2, spec), one, 1e-4);
    expect_near(train<float>(4, spec), one, 1e-4);
}

TEST_P(StepOf, the_same_layout_gives_the_same_bits) {
    const spec::TrainerSpec spec = a_tiny_spec(GetParam());
    EXPECT_EQ(train<float>(2, spec).weights, train<float>(2, spec).weights);
}

INSTANTIATE_TEST_SUITE_P(Shapes, StepOf, ::testing::Values("gpt2", "llama"),
                         [](const auto& which) { return std::string(which.param); });

TEST(Step, every_rank_ends_with_the_same_bits) {
    std::vector<std::vector<float>> weights(4);
    comm::run_ranks(4, [&](comm::Comm& comm) {
        Rank<float> rank(comm, a_tiny_spec());
        for (int i = 0; i < 3; ++i) rank.trainer.step(CountingSamples(), false);
        weights[static_cast<std::size_t>(comm.rank())] = rank.weights();
    });
    for (const auto& of_rank : weights) EXPECT_EQ(of_rank, weights[0]);
}

TEST(Step, clipping_bounds_the_gradient_and_not_its_report) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.max_steps = 1;
    spec.warmup_steps = 0;
    spec.weight_decay = 0;
    spec.epsilon = 1e6;  // So large that the update is proportional to the gradient.
    spec.learning_rate = spec.min_learning_rate = 1e6;
    spec.gradient_clip = 0;
    const auto moved = [&] {
        Trained<double> run = train<double>(1, spec);
        model::ParameterSet<double> start(spec::model_config(spec, testing::kVocabulary));
        model::initialize(start, static_cast<std::uint64_t>(spec.seed));
        double sum = 0;
        for (std::size_t i = 0; i < run.weights.size(); ++i) {
            sum += std::pow(run.weights[i] - start.values()[i], 2);
        }
        return std::pair(std::sqrt(sum), run.norms[0]);
    };
    const auto [free_length, free_norm] = moved();
    EXPECT_NEAR(free_length, free_norm, 1e-4 * free_norm);
    spec.gradient_clip = free_norm / 4;
    const auto [clipped_length, clipped_norm] = moved();
    EXPECT_EQ(clipped_norm, free_norm);
    EXPECT_NEAR(clipped_length, free_norm / 4, 1e-4 * free_norm);
}

TEST(Step, norms_and_biases_do_not_decay) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.weight_decay = 0.5;
    comm::run_ranks(1, [&](comm::Comm& comm) {
        Rank<double> rank(comm, spec);
        auto& weights = rank.trainer.weights();
        model::ParameterSet<double> zero(rank.trainer.config());
        const std::vector<double> before = rank.weights();
        rank.trainer.optimizer().apply(weights, zero, {.learning_rate = 0.1, .gradient_scale = 1});
        std::size_t at = 0;
        for (const spec::Parameter& parameter : weights.table()) {
            const double factor = parameter.is_matrix ? 1 - 0.1 * 0.5 : 1;
            EXPECT_NEAR(weights.values()[at], before[at] * factor, 1e-15) << parameter.name;
            at += static_cast<std::size_t>(parameter.count());
        }
    });
}

TEST(Step, a_gradient_that_is_not_finite_costs_exactly_one_step_on_every_rank) {
    const CountingSamples samples;
    comm::run_ranks(2, [&](comm::Comm& comm) {
        Rank<float> rank(comm, a_tiny_spec());
        Trainer<float>& trainer = rank.trainer;
        trainer.step(samples, false);
        const std::vector<float> before = rank.weights();
        const auto moments = trainer.optimizer().first_moment().values();
        const std::vector<float> moments_before(moments.begin(), moments.end());

        // One rank's weights go bad for one step: its gradient does, and so everyone's.
        float& victim = trainer.weights().values()[5];
        const float was = victim;
        if (comm.rank() == 1) victim = std::numeric_limits<float>::quiet_NaN();
        const StepResult bad = trainer.step(samples, false);
        if (comm.rank() == 1) victim = was;
        EXPECT_TRUE(bad.skipped);
        EXPECT_EQ(rank.weights(), before);
        EXPECT_THAT(moments, ::testing::ElementsAreArray(moments_before));
        EXPECT_EQ(trainer.optimizer().updates(), 1);
        EXPECT_EQ(trainer.progress().step, 2);

        const StepResult good = trainer.step(samples, false);
        EXPECT_FALSE(good.skipped);
        EXPECT_EQ(good.learning_rate, bad.learning_rate);  // The schedule did not advance.
        EXPECT_EQ(trainer.progress().bad_steps, 0);
    });
}

TEST(Step, too_many_bad_gradients_in_a_row_end_the_training) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.bad_steps_max = 3;
    comm::run_ranks(1, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        rank.trainer.weights().values()[5] = std::numeric_limits<float>::infinity();
        const CountingSamples samples;
        EXPECT_TRUE(rank.trainer.step(samples, false).skipped);
        EXPECT_TRUE(rank.trainer.step(samples, false).skipped);
        EXPECT_THROW(rank.trainer.step(samples, false), Error);
    });
}

TEST(Step, a_stop_asked_of_one_rank_reaches_all) {
    comm::run_ranks(3, [&](comm::Comm& comm) {
        spec::TrainerSpec spec = a_tiny_spec();
        spec.global_batch_size = 6;
        Rank<float> rank(comm, spec);
        EXPECT_FALSE(rank.trainer.step(CountingSamples(), false).stop);
        EXPECT_TRUE(rank.trainer.step(CountingSamples(), comm.rank() == 2).stop);
    });
}

TEST(Evaluation, is_the_same_over_any_number_of_ranks_and_reads_no_sample_twice) {
    const CountingSamples few(5);  // Fewer than asked for, and not divisible.
    std::vector<double> losses;
    for (const int ranks : {1, 2, 4}) {
        comm::run_ranks(ranks, [&](comm::Comm& comm) {
            Rank<double> rank(comm, a_tiny_spec());
            const auto evaluation = rank.trainer.evaluate(few);
            EXPECT_EQ(evaluation.tokens, 5 * 6);
            if (comm.rank() == 0) losses.push_back(evaluation.loss);
        });
    }
    EXPECT_NEAR(losses[1], losses[0], 1e-12);
    EXPECT_NEAR(losses[2], losses[0], 1e-12);
    EXPECT_NEAR(losses[0], std::log(testing::kVocabulary), 0.2);
}

}  // namespace
}  // namespace gruca::train
