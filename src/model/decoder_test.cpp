// The whole model against finite differences, in double, for both shapes; and what the decoder
// promises about sums, batches and reproducibility.
#include "model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/boundary.h"
#include "base/random.h"
#include "model/incremental_decoder.h"

namespace gruca::model {
namespace {

struct Case {
    std::string name;
    spec::ModelConfig config;
};

spec::ModelConfig tiny(spec::Family family, std::int64_t kv_heads, bool tied) {
    return {.family = family,
            .layers = 2,
            .width = 12,
            .heads = 6 / (family == spec::Family::gpt2 ? 2 : 1),
            .kv_heads = kv_heads,
            .hidden = 20,
            .context_length = 7,
            .vocabulary_size = 11,
            .tied_embeddings = tied};
}

spec::ModelConfig mistral() {
    spec::ModelConfig config = tiny(spec::Family::mistral, 2, false);
    config.sliding_window = 3;
    return config;
}

spec::ModelConfig qwen2() {
    spec::ModelConfig config = tiny(spec::Family::qwen2, 3, true);
    config.qkv_bias = true;
    config.sliding_window = 2;
    config.first_windowed_layer = 1;
    return config;
}

spec::ModelConfig qwen3() {
    spec::ModelConfig config = tiny(spec::Family::qwen3, 2, false);
    config.own_head_size = 4;  // Heads are twice as wide as the residual stream has room for.
    config.head_norm = true;
    return config;
}

spec::ModelConfig llama3() {
    spec::ModelConfig config = tiny(spec::Family::llama, 2, false);
    config.qkv_bias = config.output_bias = config.feed_forward_bias = true;
    config.rope_theta = 50;
    config.rope_scaling = {.kind = spec::RopeScaling::Kind::llama3,
                           .factor = 4,
                           .low_frequency_factor = 1,
                           .high_frequency_factor = 2,
                           .original_context_length = 12};
    return config;
}

const std::vector<Case> kCases = {
    {"gpt2_tied", tiny(spec::Family::gpt2, 3, true)},
    {"gpt2_untied", tiny(spec::Family::gpt2, 3, false)},
    {"llama_tied", tiny(spec::Family::llama, 6, true)},
    {"llama_untied_grouped", tiny(spec::Family::llama, 2, false)},
    {"llama3_biased", llama3()},
    {"mistral_windowed", mistral()},
    {"qwen2_windowed_above", qwen2()},
    {"qwen3_own_heads", qwen3()},
};

// A model with weights large enough that every path matters.
struct Model {
    explicit Model(const spec::ModelConfig& shape, BatchShape largest = {.b = 3, .t = 7})
        : config(shape),
          ops(kernels::make_reference_ops<double>()),
          weights(shape),
          gradients(shape),
          decoder(shape, *ops, {.weights = weights, .gradients = &gradients}, largest) {
        const Philox chance(7, 0);
        for (std::size_t p = 0; p < weights.table().size(); ++p) {
            const double mean = weights.table()[p].init_mean;
            for (double& value : weights.of(p)) {
                value = mean + 0.3 * chance.normal(next++);
            }
        }
    }

    const spec::ModelConfig config;
    const std::unique_ptr<kernels::Ops<double>> ops;
    ParameterSet<double> weights;
    ParameterSet<double> gradients;
    Decoder<double> decoder;
    std::uint64_t next = 0;
};

struct Tokens {
    explicit Tokens(const spec::ModelConfig& config, BatchShape batch_shape = {.b = 2, .t = 5})
        : shape(batch_shape) {
        const Philox chance(8, 0);
        const auto v = static_cast<std::uint64_t>(config.vocabulary_size);
        for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(shape.n()); ++i) {
            tokens.push_back(static_cast<std::int32_t>(chance.below(v, 2 * i)));
            targets.push_back(static_cast<std::int32_t>(chance.below(v, 2 * i + 1)));
        }
    }
    Batch batch() const { return {.tokens = tokens, .targets = targets, .shape = shape}; }

    BatchShape shape;
    std::vector<std::int32_t> tokens, targets;
};

class DecoderOf : public testing::TestWithParam<Case> {};

TEST_P(DecoderOf, gradients_agree_with_finite_differences_in_every_parameter) {
    Model model(GetParam().config);
    Tokens tokens(model.config);
    tokens.targets[3] = kernels::kIgnoredTarget;
    const Loss loss = model.decoder.train(tokens.batch(), 1);
    EXPECT_EQ(loss.tokens, 9);

    constexpr double kStep = 1e-5;
    const std::span<double> values = model.weights.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double was = values[i];
        values[i] = was + kStep;
        const double above = model.decoder.evaluate(tokens.batch()).sum;
        values[i] = was - kStep;
        const double below = model.decoder.evaluate(tokens.batch()).sum;
        values[i] = was;
        const double numeric = (above - below) / (2 * kStep);
        ASSERT_NEAR(model.gradients.values()[i], numeric, 1e-6 * std::max(1.0, std::abs(numeric)))
            << "number " << i << " of " << values.size();
    }
}

TEST_P(DecoderOf, gradients_add_up_over_micro_batches_and_scale_with_the_factor) {
    Model whole(GetParam().config), parts(GetParam().config);
    const Tokens tokens(whole.config);
    const Loss loss = whole.decoder.train(tokens.batch(), 0.5);
    Loss sum;
    for (std::size_t row = 0; row < 2; ++row) {
        const std::span<const std::int32_t> ids(tokens.tokens), targets(tokens.targets);
        const Loss one = parts.decoder.train({.tokens = ids.subspan(5 * row, 5),
                                              .targets = targets.subspan(5 * row, 5),
                                              .shape = {.b = 1, .t = 5}},
                                             0.5);
        sum.sum += one.sum;
        sum.tokens += one.tokens;
    }
    EXPECT_NEAR(sum.sum, loss.sum, 1e-12 * loss.sum);
    EXPECT_EQ(sum.tokens, loss.tokens);
    for (std::size_t i = 0; i < whole.gradients.values().size(); ++i) {
        EXPECT_NEAR(parts.gradients.values()[i], whole.gradients.values()[i], 1e-12);
    }
}

TEST_P(DecoderOf, what_comes_later_does_not_change_what_came_before) {
    Model model(GetParam().config);
    const auto logits = [&](std::vector<std::int32_t> tokens) {
        std::vector<double> scores(11);
        model.decoder.next_token_logits(tokens, scores);
        return scores;
    };
    // The loss of the first token alone is that of the first token in a longer sequence.
    const std::vector<double> first = logits({4});
    const double top = *std::max_element(first.begin(), first.end());
    double sum = 0;
    for (const double score : first) sum += std::exp(score - top);
    const std::vector<std::int32_t> tokens = {4, 9, 1}, targets = {2, -1, -1};
    const Loss loss =
        model.decoder.evaluate({.tokens = tokens, .targets = targets, .shape = {.b = 1, .t = 3}});
    EXPECT_NEAR(loss.sum, std::log(sum) + top - first[2], 1e-12);
    EXPECT_NE(logits({4, 9}), logits({5, 9}));
    EXPECT_NE(logits({4, 9, 1}), logits({9, 4, 1}));
}

TEST_P(DecoderOf, a_document_does_not_see_the_one_before_it_in_its_sequence) {
    Model model(GetParam().config);
    const std::vector<std::int32_t> starts = {0, 0, 0, 3, 3, 3, 3};
    const std::vector<std::int32_t> targets = {-1, -1, -1, 6, 2, 5, 8};
    const auto loss = [&](std::int32_t earlier, std::span<const std::int32_t> documents) {
        const std::vector<std::int32_t> tokens = {4, earlier, 1, 3, 6, 2, 5};
        return model.decoder
            .evaluate({.tokens = tokens,
                       .targets = targets,
                       .shape = {.b = 1, .t = 7},
                       .document_starts = documents})
            .sum;
    };
    EXPECT_EQ(loss(9, starts), loss(2, starts));
    EXPECT_NE(loss(9, {}), loss(2, {}));
}

TEST(Decoder, a_document_of_llama_is_the_same_wherever_it_lies) {
    Model model(llama3());  // Rotary positions count differences only.
    const std::vector<std::int32_t> tokens = {4, 9, 1, 3, 6, 2, 5},
                                    targets = {9, 1, -1, 6, 2, 5, 8};
    const std::vector<std::int32_t> starts = {0, 0, 0, 3, 3, 3, 3};
    const std::span<const std::int32_t> ids(tokens), next(targets);
    const Loss together = model.decoder.evaluate(
        {.tokens = ids, .targets = next, .shape = {.b = 1, .t = 7}, .document_starts = starts});
    const Loss first = model.decoder.evaluate(
        {.tokens = ids.first(3), .targets = next.first(3), .shape = {.b = 1, .t = 3}});
    const Loss second = model.decoder.evaluate(
        {.tokens = ids.subspan(3), .targets = next.subspan(3), .shape = {.b = 1, .t = 4}});
    EXPECT_NEAR(together.sum, first.sum + second.sum, 1e-11);
}

TEST_P(DecoderOf, fed_token_by_token_it_scores_the_same) {
    Model model(GetParam().config);
    IncrementalDecoder<double> incremental(model.config, *model.ops, model.weights);
    const std::vector<std::int32_t> tokens = {4, 9, 1, 1, 0, 10, 7};
    for (int round = 0; round < 2; ++round) {
        for (std::size_t length = 1; length <= tokens.size(); ++length) {
            std::vector<double> wanted(11);
            model.decoder.next_token_logits(std::span(tokens).first(length), wanted);
            EXPECT_THAT(incremental.append(tokens[length - 1]),
                        testing::Pointwise(testing::DoubleNear(1e-11), wanted));
        }
        incremental.clear();
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DecoderOf, testing::ValuesIn(kCases),
                         [](const auto& shape) { return shape.param.name; });

TEST(Decoder, tokens_outside_the_vocabulary_are_refused_and_named) {
    Model model(kCases[0].config);
    Tokens tokens(model.config);
    tokens.tokens[4] = 11;
    const auto error = run_guarded([&] { model.decoder.evaluate(tokens.batch()); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error->message(), testing::HasSubstr("11"));
    tokens.tokens[4] = 0;
    tokens.targets[2] = 12;
    EXPECT_THROW(model.decoder.train(tokens.batch(), 1), Error);
    tokens.targets[2] = -2;
    EXPECT_THROW(model.decoder.train(tokens.batch(), 1), Error);
}

TEST(Initialization, depends_on_seed_and_name_only) {
    const spec::ModelConfig config = kCases[3].config;
    spec::ModelConfig deeper = config;
    deeper.layers = 2;
    deeper.vocabulary_size = 30;
    ParameterSet<double> a(config), b(config), c(deeper);
    initialize(a, 5);
    initialize(b, 6);
    initialize(c, 5);
    EXPECT_NE(a.of(0)[0], b.of(0)[0]);
    EXPECT_EQ(a.of(0)[0], c.of(0)[0]);
    const std::size_t up = a.index_of("model.layers.1.mlp.up_proj.weight");
    EXPECT_THAT(a.of(up), testing::ElementsAreArray(c.of(up)));
}

TEST(Initialization, follows_the_deviations_of_the_table) {
    spec::ModelConfig config = kCases[0].config;
    config.width = 96;
    config.hidden = 384;
    ParameterSet<float> weights(config);
    initialize(weights, 1);
    const auto deviation = [&](const char* name) {
        const auto values = weights.of(weights.index_of(name));
        double sum = 0;
        for (const float value : values) sum += double{value} * double{value};
        return std::sqrt(sum / static_cast<double>(values.size()));
    };
    EXPECT_NEAR(deviation("transformer.h.0.mlp.c_fc.weight"), 0.02, 0.0005);
    EXPECT_NEAR(deviation("transformer.h.1.mlp.c_proj.weight"), 0.01, 0.0005);
    EXPECT_EQ(deviation("transformer.h.0.ln_1.weight"), 1);
    EXPECT_EQ(deviation("transformer.h.0.attn.c_attn.bias"), 0);
}

}  // namespace
}  // namespace gruca::model
