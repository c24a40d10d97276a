// The command line, and texts continued by a model made here.
#include "train/command_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/boundary.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "data/tokenizer.h"
#include "model/model_directory.h"
#include "spec/event.h"
#include "spec/trainer.h"
#include "train/generate.h"

namespace gruca::train {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string run(std::vector<std::string> arguments) {
    std::ostringstream out;
    const SystemClock clock;
    const std::atomic<bool> stop = false;
    run_command({.arguments = std::move(arguments),
                 .environment = [](const char*) { return std::string(); },
                 .out = out,
                 .clock = clock,
                 .stop_asked = stop});
    return out.str();
}

std::string refusal(std::vector<std::string> arguments) {
    const auto error = run_guarded([&] { run(std::move(arguments)); });
    return error && error->code() == ErrorCode::invalid_argument ? error->message() : "";
}

// A model of random weights over the 256 bytes and an end of text.
class Generation : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        data::TokenizerParts parts;
        for (int byte = 0; byte < 256; ++byte) {
            parts.words.push_back(std::string(1, static_cast<char>(byte)));
        }
        parts.words.emplace_back();
        parts.special_tokens[256] = std::string(data::kEndOfText);
        spec::TrainerSpec spec;
        spec.architecture = GetParam();
        spec.layers = 1;
        spec.width = 16;
        spec.heads = 2;
        spec.context_length = 12;
        const spec::ModelConfig config = spec::model_config(spec, 300);
        model::ParameterSet<float> weights(config);
        model::initialize(weights, 4);
        for (float& weight : weights.values()) weight *= 10;
        // An end of text that scores in the middle, so never among the best.
        for (float& weight : weights.of(0).subspan(256 * 16, 16)) weight = 0;
        model::write_model_directory(
            directory(), config, weights,
            {.tokenizer_json = data::write_tokenizer_json(parts), .end_of_text = 256});
    }
    std::filesystem::path directory() const { return scratch_.path(); }
    std::string text(GenerateOptions options) {
        options.model = directory();
        std::ostringstream out;
        generate(options, out);
        return out.str();
    }

  private:
    const TempDir scratch_;
};

TEST_P(Generation, continues_the_prompt_and_is_a_function_of_the_seed) {
    const GenerateOptions options{.model = {}, .prompt = "Hello", .tokens = 8, .seed = 3};
    const std::string first = text(options);
    EXPECT_THAT(first, StartsWith("Hello"));
    EXPECT_GT(first.size(), 6u);
    EXPECT_EQ(text(options), first);
    GenerateOptions other = options;
    other.seed = 4;
    EXPECT_NE(text(other), first);
}

TEST_P(Generation, goes_on_past_the_context_and_prints_whole_characters_only) {
    const std::string long_text = text({.model = {}, .prompt = "x", .tokens = 60});
    EXPECT_TRUE(is_utf8(long_text));
    EXPECT_GT(long_text.size(), 30u);
    const std::string long_prompt(40, 'y');
    EXPECT_THAT(text({.model = {}, .prompt = long_prompt, .tokens = 2}), StartsWith(long_prompt));
}

TEST_P(Generation, several_continuations_differ_and_an_empty_prompt_is_a_beginning) {
    const std::string several =
        text({.model = {}, .prompt = "", .tokens = 10, .temperature = 2, .count = 2});
    const std::size_t line = several.find("--------\n");
    ASSERT_NE(line, std::string::npos);
    EXPECT_NE(several.substr(0, line), several.substr(line + 9));
}

TEST_P(Generation, an_end_of_text_in_the_prompt_is_one) {
    GenerateOptions options{.model = {}, .prompt = "", .tokens = 8, .temperature = 0};
    const std::string after_nothing = text(options);
    options.prompt = data::kEndOfText;
    EXPECT_EQ(text(options), std::string(data::kEndOfText) + after_nothing);
}

TEST_P(Generation, works_from_the_command_line) {
    const std::string out = run({"generate", "--model", directory().string(), "--prompt", "abc",
                                 "--tokens", "3", "--temperature", "0"});
    EXPECT_THAT(out, StartsWith("abc"));
    EXPECT_EQ(out, text({.model = {}, .prompt = "abc", .tokens = 3, .temperature = 0}));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Generation, ::testing::Values("gpt2", "llama"),
                         [](const auto& which) { return std::string(which.param); });

TEST_P(Generation, logits_are_the_scores_by_which_it_chooses) {
    // Short, and as long as the model can see.
    for (const std::string prompt : {"Hel", "Hello, world"}) {
        std::vector<std::string> tokens;
        for (const char c : prompt) tokens.push_back(std::to_string(c));
        const Json printed = Json::parse(run({"logits", "--model", directory().string(), "--tokens",
                                              fmt::format("{}", fmt::join(tokens, ","))}));
        const auto& rows = printed.at("logits").as_array();
        ASSERT_EQ(rows.size(), prompt.size());
        std::vector<double> last;
        for (const Json& score : rows.back().as_array()) last.push_back(score.as_double());
        ASSERT_EQ(last.size(), 300u);
        last.resize(256);
        const auto best = std::max_element(last.begin(), last.end()) - last.begin();
        const std::string chosen =
            text({.model = {}, .prompt = prompt, .tokens = 1, .temperature = 0});
        EXPECT_EQ(chosen, repair_utf8(prompt + std::string(1, static_cast<char>(best))) + "\n");
    }

    EXPECT_THAT(refusal({"logits", "--model", directory().string(), "--tokens", "1,,2"}),
                HasSubstr("1,,2"));
    EXPECT_THAT(refusal({"logits", "--model", directory().string(), "--tokens", "1,300"}),
                HasSubstr("300"));
    EXPECT_THAT(refusal({"logits", "--model", directory().string(), "--tokens",
                         "1,1,1,1,1,1,1,1,1,1,1,1,1"}),
                HasSubstr("13"));
}

TEST(CommandLine, help_names_every_command) {
    for (const char* argument : {"--help", "-h", "help"}) {
        const std::string out = run({argument});
        for (const char* command : {"train", "generate", "reference"}) {
            EXPECT_THAT(out, HasSubstr(command));
        }
    }
    EXPECT_EQ(run({"generate", "--help"}), run({"--help"}));
}

TEST(CommandLine, wrong_words_are_refused_and_the_right_ones_named) {
    EXPECT_THAT(refusal({"trian"}), HasSubstr("trian"));
    EXPECT_THAT(refusal({"generate", "--modle", "x"}), HasSubstr("--model"));
    EXPECT_THAT(refusal({"generate", "--model"}), HasSubstr("value"));
    EXPECT_THAT(refusal({"generate", "--model", "x"}), HasSubstr("--prompt"));
    const auto with = [](const char* option, const char* value) {
        return refusal({"generate", "--model", "x", "--prompt", "y", option, value});
    };
    EXPECT_THAT(with("--tokens", "0"), HasSubstr("--tokens"));
    EXPECT_THAT(with("--tokens", "ten"), HasSubstr("ten"));
    EXPECT_THAT(with("--temperature", "-1"), HasSubstr("--temperature"));
    EXPECT_THAT(with("--temperature", "nan"), HasSubstr("--temperature"));
    EXPECT_THAT(refusal({"train", "--base-dri", "x"}), HasSubstr("--base-dir"));
    EXPECT_THAT(refusal({"reference", "cooking"}), HasSubstr("metrics"));
}

TEST(CommandLine, reference_pages_come_from_the_code) {
    EXPECT_EQ(run({"reference", "hyperparameters"}), spec::hyperparameter_page());
    EXPECT_EQ(run({"reference", "metrics"}), spec::metrics_page());
}

}  // namespace
}  // namespace gruca::train
