// Our decoders and our training against PyTorch and transformers, by the golden files they left.

#include <gtest/gtest.h>

#include <cmath>

#include "comm/thread_comm.h"
#include "golden.h"
#include "kernels/ops.h"
#include "model/decoder.h"
#include "train/trainer.h"

namespace gruca::numerics {
namespace {

constexpr std::int64_t kSequences = 2;

// Relative to the largest number of the tensor: the smallest ones are sums that nearly cancel.
template <class Real>
void expect_close(std::span<const Real> ours, const std::vector<double>& theirs, double tolerance,
                  const std::string& what) {
    ASSERT_EQ(ours.size(), theirs.size()) << what;
    double largest = 0;
    for (const double value : theirs) largest = std::max(largest, std::abs(value));
    ASSERT_GT(largest, 0) << what << ": a comparison of nothing";
    for (std::size_t i = 0; i < ours.size(); ++i) {
        const double difference = std::abs(static_cast<double>(ours[i]) - theirs[i]);
        ASSERT_LE(difference, tolerance * largest) << what << " at " << i << ": " << theirs[i];
    }
}

template <class Real>
struct Batch {
    explicit Batch(const Golden& golden) : t(golden.config().context_length) {
        const FormulaSamples samples(golden.config().vocabulary_size);
        std::vector<std::int32_t> row(static_cast<std::size_t>(t) + 1);
        for (std::int64_t b = 0; b < kSequences; ++b) {
            samples.read(b, row);
            tokens.insert(tokens.end(), row.begin(), row.end() - 1);
            targets.insert(targets.end(), row.begin() + 1, row.end());
        }
        for (const Json& place : golden.batch().at("ignored").as_array()) {
            const auto& at = place.as_array();
            targets[static_cast<std::size_t>(at[0].as_int() * t + at[1].as_int())] =
                kernels::kIgnoredTarget;
        }
    }

    std::int64_t t;
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
};

template <class Real>
void expect_forward_and_backward_agree(kernels::Ops<Real>& ops, const std::string& name,
                                       double tolerance) {
    const Golden golden(name);
    const spec::ModelConfig config = golden.config();
    model::ParameterSet<Real> weights(config), gradients(config);
    set_formula_weights(weights);
    const Batch<Real> batch(golden);
    model::Decoder<Real> decoder(config, ops, {.weights = weights, .gradients = &gradients},
                                 {.b = kSequences, .t = batch.t});

    const model::Loss loss = decoder.train({.tokens = batch.tokens,
                                            .targets = batch.targets,
                                            .shape = {.b = kSequences, .t = batch.t}},
                                           1.0);
    EXPECT_EQ(loss.tokens, golden.batch().at("loss_tokens").as_int());
    const double expected = golden.batch().at("loss_sum").as_double();
    EXPECT_NEAR(loss.sum, expected, tolerance * expected);
    for (std::size_t p = 0; p < gradients.table().size(); ++p) {
        const spec::Parameter& parameter = gradients.table()[p];
        const auto theirs = from_file_order(
            parameter, doubles_in(golden.batch().at("gradients").at(parameter.name)));
        expect_close(std::span<const Real>(gradients.of(p)), theirs, tolerance, parameter.name);
    }
    EXPECT_EQ(gradients.table().size(), golden.batch().at("gradients").as_object().size());
}

template <class Real>
void expect_logits_agree(kernels::Ops<Real>& ops, const std::string& name, double tolerance) {
    const Golden golden(name);
    const spec::ModelConfig config = golden.config();
    model::ParameterSet<Real> weights(config);
    set_formula_weights(weights);
    const Batch<Real> batch(golden);
    model::Decoder<Real> decoder(config, ops, {.weights = weights, .gradients = nullptr},
                                 {.b = 1, .t = batch.t});

    const std::vector<double> theirs = doubles_in(golden.batch().at("logits"));
    const auto words = static_cast<std::size_t>(config.vocabulary_size);
    std::vector<Real> logits_v(words);
    for (std::size_t n = 0; n < batch.tokens.size(); ++n) {
        const std::size_t start = n - n % static_cast<std::size_t>(batch.t);
        decoder.next_token_logits(std::span(batch.tokens).subspan(start, n - start + 1), logits_v);
        const auto row = theirs.begin() + static_cast<std::ptrdiff_t>(n * words);
        expect_close(std::span<const Real>(logits_v),
                     {row, row + static_cast<std::ptrdiff_t>(words)}, tolerance,
                     "logits of token " + std::to_string(n));
    }
}

template <class Real>
using MakeOps = std::unique_ptr<kernels::Ops<Real>> (*)();

// A bias of the keys moves all scores of a query alike, so its gradient is zero. AdamW makes steps
// of the learning rate's size even of rounding errors, so after a training in float there is
// nothing to compare.
bool is_key_bias(const spec::Parameter& parameter, std::size_t place) {
    const auto third = static_cast<std::size_t>(parameter.count() / 3);
    return parameter.name.ends_with("c_attn.bias") && place / third == 1;
}

// Every step's loss, gradient norm and learning rate, and the weights after the last.
template <class Real>
void expect_training_agrees(MakeOps<Real> make_ops, const std::string& name, int ranks,
                            double tolerance) {
    const Golden golden(name);
    const spec::TrainerSpec spec = golden.trainer_spec();
    const FormulaSamples samples(golden.config().vocabulary_size);
    comm::run_ranks(ranks, [&](comm::Comm& comm) {
        const auto ops = make_ops();
        parallel::Mesh mesh(comm);
        const SystemClock clock;
        train::Stopwatch stopwatch(clock);
        train::Trainer<Real> trainer({.spec = spec,
                                      .config = golden.config(),
                                      .ops = *ops,
                                      .mesh = mesh,
                                      .stopwatch = stopwatch});
        set_formula_weights(trainer.weights());
        for (const Json& expected : golden.training().at("steps").as_array()) {
            const train::StepResult step = trainer.step(samples, false);
            const auto expect_near = [&](const char* what, double value) {
                const double theirs = expected.at(what).as_double();
                EXPECT_NEAR(value, theirs, tolerance * theirs)
                    << what << " of step " << trainer.progress().step;
            };
            expect_near("loss", step.loss);
            expect_near("gradient_norm", step.gradient_norm);
            expect_near("learning_rate", step.learning_rate);
        }
        for (std::size_t p = 0; p < trainer.weights().table().size(); ++p) {
            const spec::Parameter& parameter = trainer.weights().table()[p];
            auto theirs = from_file_order(
                parameter, doubles_in(golden.training().at("weights").at(parameter.name)));
            for (std::size_t i = 0; i < theirs.size(); ++i) {
                const bool skipped = sizeof(Real) == 4 && is_key_bias(parameter, i);
                if (skipped) theirs[i] = static_cast<double>(trainer.weights().of(p)[i]);
            }
            expect_close(std::span<const Real>(trainer.weights().of(p)), theirs, tolerance,
                         parameter.name);
        }
    });
}

// In float, sums of a few hundred terms: 24 bits, less what rounding costs on the way.
void expect_float_is_close(MakeOps<float> make_ops, const std::string& name) {
    const auto ops = make_ops();
    expect_forward_and_backward_agree(*ops, name, 1e-5);
    expect_logits_agree(*ops, name, 1e-5);
    // AdamW divides by the root of the second moment, which magnifies errors of small gradients.
    expect_training_agrees(make_ops, name, 1, 1e-3);
    expect_training_agrees(make_ops, name, 2, 1e-3);
}

class GoldenModel : public testing::TestWithParam<const char*> {};

TEST_P(GoldenModel, loss_and_every_gradient_in_double_are_those_of_pytorch) {
    const auto ops = kernels::make_reference_ops<double>();
    expect_forward_and_backward_agree(*ops, GetParam(), 1e-10);
}

TEST_P(GoldenModel, logits_in_double_are_those_of_transformers) {
    const auto ops = kernels::make_reference_ops<double>();
    expect_logits_agree(*ops, GetParam(), 1e-10);
}

TEST_P(GoldenModel, a_training_in_double_is_that_of_pytorch_on_one_rank_and_on_two) {
    expect_training_agrees<double>(kernels::make_reference_ops<double>, GetParam(), 1, 1e-9);
    expect_training_agrees<double>(kernels::make_reference_ops<double>, GetParam(), 2, 1e-9);
}

TEST_P(GoldenModel, the_reference_kernels_in_float_stay_close) {
    expect_float_is_close(kernels::make_reference_ops<float>, GetParam());
}

TEST_P(GoldenModel, the_cpu_kernels_stay_close) {
    expect_float_is_close(kernels::make_cpu_ops, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Each, GoldenModel,
                         testing::Values("gpt2", "llama", "llama3", "mistral", "qwen2", "qwen3"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace gruca::numerics
