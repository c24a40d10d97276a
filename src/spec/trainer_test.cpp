// The hyperparameters' reader and validation, and the shape of a model.
#include "spec/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "spec/event.h"

namespace gruca::spec {
namespace {

using testing::HasSubstr;

TrainerSpec read(std::initializer_list<Json::Member> members) {
    return read_hyperparameters(Json::object(members));
}

template <class Body>
std::string refusal(Body&& body) {
    const auto error = run_guarded(body);
    EXPECT_TRUE(error.has_value());
    if (!error) return "";
    EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
    return error->message();
}

TEST(Hyperparameters, strings_with_and_without_json_quotes_mean_the_same) {
    const TrainerSpec spec = read({{"architecture", "\"llama\""},
                                   {"layers", "6"},
                                   {"width", "\"384\""},
                                   {"learning_rate", "3e-4"},
                                   {"tied_embeddings", "false"}});
    EXPECT_EQ(spec.architecture, "llama");
    EXPECT_EQ(spec.layers, 6);
    EXPECT_EQ(spec.width, 384);
    EXPECT_EQ(spec.learning_rate, 3e-4);
    EXPECT_FALSE(spec.tied_embeddings);
}

TEST(Hyperparameters, an_unknown_name_is_refused_with_the_nearest_one) {
    EXPECT_THAT(refusal([] { read({{"learing_rate", "1"}}); }), HasSubstr("learning_rate"));
}

TEST(Hyperparameters, what_belongs_to_the_sdk_is_ignored) {
    EXPECT_EQ(read({{"sagemaker_program", "\"train.py\""}}).layers, TrainerSpec{}.layers);
}

TEST(Hyperparameters, a_value_of_the_wrong_kind_names_its_key) {
    EXPECT_THAT(refusal([] { read({{"layers", "many"}}); }), HasSubstr("layers"));
    EXPECT_THAT(refusal([] { read({{"layers", "2.5"}}); }), HasSubstr("layers"));
}

TEST(Hyperparameters, a_batch_that_cannot_be_shared_names_the_nearest_that_can) {
    TrainerSpec spec;
    spec.global_batch_size = 10;
    spec.micro_batch_size = 2;
    const std::string message = refusal([&] { require_valid(spec, 3); });
    EXPECT_THAT(message, HasSubstr("6 or 12"));
    EXPECT_EQ(require_valid(spec, 5).micro_batches, 1);
    spec.global_batch_size = 2;
    EXPECT_THAT(refusal([&] { require_valid(spec, 3); }), HasSubstr("nearest: 6"));
}

TEST(Hyperparameters, a_micro_batch_left_open_divides_the_share) {
    TrainerSpec spec;
    spec.global_batch_size = 36;
    EXPECT_EQ(require_valid(spec, 2).micro_batch_size, 6);
    EXPECT_EQ(require_valid(spec, 2).micro_batches, 3);
}

TEST(Hyperparameters, every_number_out_of_range_is_listed) {
    TrainerSpec spec;
    spec.max_steps = 0;
    spec.beta2 = 1;
    spec.learning_rate = -1;
    spec.kernels = "gpu";
    const std::string message = refusal([&] { require_valid(spec, 1); });
    for (const char* key : {"max_steps", "beta2", "learning_rate", "kernels"}) {
        EXPECT_THAT(message, HasSubstr(key));
    }
}

TEST(ModelShape, heads_that_do_not_divide_the_width_name_the_nearest_that_do) {
    TrainerSpec spec;
    spec.width = 96;
    spec.heads = 7;
    EXPECT_THAT(refusal([&] { model_config(spec, 100); }), HasSubstr("6 or 8"));
    spec.heads = 6;
    spec.kv_heads = 2;
    EXPECT_THAT(refusal([&] { model_config(spec, 100); }), HasSubstr("gpt2"));
    spec.architecture = "llama";
    EXPECT_EQ(model_config(spec, 100).kv_heads, 2);
    EXPECT_EQ(model_config(spec, 100).hidden, 256);
    spec.kv_heads = 4;
    EXPECT_THAT(refusal([&] { model_config(spec, 100); }), HasSubstr("3 or 6"));
    spec.heads = 32;  // Three numbers a head: no pairs to rotate.
    spec.kv_heads = 0;
    EXPECT_THAT(refusal([&] { model_config(spec, 100); }), HasSubstr("even"));
}

TEST(ModelShape, the_parameters_of_gpt2_are_as_many_as_the_formula_says) {
    ModelConfig c{.family = Family::gpt2,
                  .layers = 12,
                  .width = 768,
                  .heads = 12,
                  .kv_heads = 12,
                  .hidden = 3072,
                  .context_length = 1024,
                  .vocabulary_size = 50257};
    EXPECT_EQ(parameter_count(c), 124'439'808);
    c.tied_embeddings = false;
    EXPECT_EQ(parameter_count(c), 124'439'808 + 50257 * 768);
}

TEST(ModelShape, the_parameters_of_llama_are_as_many_as_the_formula_says) {
    const ModelConfig c{.family = Family::llama,
                        .layers = 32,
                        .width = 4096,
                        .heads = 32,
                        .kv_heads = 8,
                        .hidden = 14336,
                        .context_length = 8192,
                        .vocabulary_size = 128256,
                        .tied_embeddings = false};
    EXPECT_EQ(parameter_count(c), 8'030'261'248);
}

TEST(ModelShape, a_configuration_survives_json_and_names_are_unique) {
    TrainerSpec spec;
    spec.architecture = "llama";
    const ModelConfig config = model_config(spec, 1234);
    EXPECT_EQ(ModelConfig::from_json(Json::parse(config.to_json().dump())), config);
    std::set<std::string> names;
    for (const Parameter& parameter : parameter_table(config)) names.insert(parameter.name);
    EXPECT_EQ(names.size(), parameter_table(config).size());
}

TEST(Events, a_step_survives_its_line) {
    const StepEvent step{.step = 10, .steps = 300, .loss = 6.125, .tokens = 40960, .skipped = true};
    const auto json = event_of_line(event_line(step) + "\n");
    ASSERT_TRUE(json.has_value());
    const auto read_back = event_as<StepEvent>(*json);
    ASSERT_TRUE(read_back.has_value());
    EXPECT_EQ(write_fields(*read_back), write_fields(step));
    EXPECT_FALSE(event_as<EvalEvent>(*json).has_value());
}

TEST(Events, numbers_that_are_not_finite_survive_too) {
    const StepEvent step{.step = 1, .loss = std::nan(""), .gradient_norm = INFINITY};
    const auto read_back = event_as<StepEvent>(*event_of_line(event_line(step)));
    ASSERT_TRUE(read_back.has_value());
    EXPECT_TRUE(std::isnan(read_back->loss));
    EXPECT_EQ(read_back->gradient_norm, INFINITY);
}

TEST(Events, lines_of_others_are_no_events) {
    for (const char* line : {"", "step 10", "{", "{}", "{\"event\":1}", "{\"event\":\"step\"",
                             "[\"event\"]", "{\"a\":{\"event\":\"step\"}}"}) {
        EXPECT_FALSE(event_of_line(line).has_value()) << line;
    }
    EXPECT_FALSE(event_as<StepEvent>(Json::parse(R"({"event":"step","loss":[1]})")).has_value());
}

TEST(Reference, the_pages_are_what_the_code_says) {
    const std::string reference = GRUCA_SOURCE_DIR "/docs/reference/";
    for (const auto& [name, page] : {std::pair{"hyperparameters.md", hyperparameter_page()},
                                     std::pair{"metrics.md", metrics_page()}}) {
        if (std::getenv("GRUCA_WRITE_DOCS")) write_file_atomic(reference + name, page);
        EXPECT_EQ(read_file(reference + name), page) << "write it anew: ./dev docs";
    }
}

}  // namespace
}  // namespace gruca::spec
