// Model directories survive the round trip; strangers' files cannot harm.
#include "model/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/boundary.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_dir.h"
#include "model/safetensors.h"

namespace gruca::model {
namespace {

spec::ModelConfig shape(spec::Family family) {
    const bool gpt2 = family == spec::Family::gpt2;
    return {.family = family,
            .layers = 2,
            .width = 8,
            .heads = 4,
            .kv_heads = gpt2 ? 4 : 2,
            .hidden = 24,
            .context_length = 6,
            .vocabulary_size = 10,
            .tied_embeddings = gpt2,
            .norm_epsilon = 1e-5,
            .rope_theta = gpt2 ? 10000.0 : 5000.0};
}

// With everything that a family may have.
spec::ModelConfig full_shape(spec::Family family) {
    spec::ModelConfig config = shape(family);
    switch (family) {
        case spec::Family::gpt2:
            break;
        case spec::Family::llama:
            config.qkv_bias = config.output_bias = config.feed_forward_bias = true;
            config.rope_scaling = {.kind = spec::RopeScaling::Kind::llama3,
                                   .factor = 8,
                                   .low_frequency_factor = 1,
                                   .high_frequency_factor = 4,
                                   .original_context_length = 3};
            break;
        case spec::Family::mistral:
            config.sliding_window = 4;
            break;
        case spec::Family::qwen2:
            config.qkv_bias = true;
            config.sliding_window = 3;
            config.first_windowed_layer = 1;
            break;
        case spec::Family::qwen3:
            config.head_norm = true;
            config.own_head_size = 4;
            break;
    }
    return config;
}

class ModelDirectory : public testing::TestWithParam<spec::Family> {};

TEST_P(ModelDirectory, gives_back_the_configuration_and_the_weights_bit_for_bit) {
    const TempDir scratch;
    const spec::ModelConfig config = full_shape(GetParam());
    ParameterSet<float> written(config), read(config);
    initialize(written, 3);
    write_model_directory(scratch.path(), config, written,
                          {.tokenizer_json = "{}", .end_of_text = 9});
    EXPECT_EQ(read_model_config(scratch.path()), config);
    read_weights(scratch.path(), read);
    EXPECT_THAT(read.values(), testing::ElementsAreArray(written.values()));
    EXPECT_EQ(read_file(scratch.path() / "tokenizer.json"), "{}");
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelDirectory,
                         testing::Values(spec::Family::gpt2, spec::Family::llama,
                                         spec::Family::mistral, spec::Family::qwen2,
                                         spec::Family::qwen3),
                         [](const auto& which) { return spec::name(which.param); });

TEST(ModelFiles, projections_of_gpt2_lie_transposed_in_the_file) {
    const TempDir scratch;
    const spec::ModelConfig config = shape(spec::Family::gpt2);
    ParameterSet<float> weights(config);
    initialize(weights, 3);
    write_model_directory(scratch.path(), config, weights, {});
    const SafetensorsFile file(scratch.path() / "model.safetensors");
    const auto* entry = file.find("transformer.h.0.attn.c_attn.weight");
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->shape, (tensor::Shape{8, 24}));
    const auto ours = weights.of(weights.index_of("transformer.h.0.attn.c_attn.weight"));
    EXPECT_EQ(file.read(*entry)[1], ours[8]);  // Input 0, output 1.
}

TEST(ModelFiles, what_these_decoders_do_not_compute_is_refused) {
    const TempDir scratch;
    const spec::ModelConfig config = shape(spec::Family::llama);
    write_model_directory(scratch.path(), config, ParameterSet<float>(config), {});
    const auto with = [&](const char* key, const Json& value) {
        Json json = Json::parse(read_file(scratch.path() / "config.json"));
        json.set(key, value);
        const TempDir other;
        write_file_atomic(other.path() / "config.json", json.dump());
        const auto error = run_guarded([&] { read_model_config(other.path()); });
        if (error) {
            EXPECT_THAT(error->message(), testing::HasSubstr("config.json"));
        }
        return error ? std::string(name(error->code())) : "loaded";
    };
    EXPECT_EQ(with("vocab_size", Json()), "invalid_argument");
    EXPECT_EQ(with("hidden_act", "gelu"), "invalid_argument");
    EXPECT_EQ(with("attention_bias", true), "loaded");
    EXPECT_EQ(with("rope_scaling", Json::object({{"rope_type", "llama3"}})), "invalid_argument");
    EXPECT_EQ(with("rope_scaling", Json::object({{"rope_type", "yarn"}})), "invalid_argument");
    EXPECT_EQ(with("partial_rotary_factor", 0.5), "invalid_argument");
    EXPECT_EQ(with("head_dim", 3), "invalid_argument");
    EXPECT_EQ(with("model_type", "mamba"), "invalid_argument");
    EXPECT_EQ(with("num_hidden_layers", -1), "invalid_argument");
    EXPECT_EQ(with("num_attention_heads", 0), "invalid_argument");
    EXPECT_EQ(with("some_new_key", 1), "loaded");
}

spec::ModelConfig config_of(const char* text) {
    const TempDir scratch;
    write_file_atomic(scratch.path() / "config.json", text);
    return read_model_config(scratch.path());
}

// What transformers assumes where config.json is silent.
TEST(ModelFiles, members_left_out_have_the_defaults_of_their_family) {
    const std::string common =
        R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
           "intermediate_size": 8, "vocab_size": 9)";
    const auto mistral = config_of((R"({"model_type": "mistral", )" + common + "}").c_str());
    EXPECT_EQ(mistral.sliding_window, 4096);
    EXPECT_EQ(mistral.kv_heads, 4);
    const auto none =
        config_of((R"({"model_type": "mistral", "sliding_window": null, )" + common + "}").c_str());
    EXPECT_EQ(none.sliding_window, 0);
    const auto qwen3 = config_of((R"({"model_type": "qwen3", )" + common + "}").c_str());
    EXPECT_EQ(qwen3.head_size(), 128);
    EXPECT_TRUE(qwen3.head_norm);
    EXPECT_EQ(qwen3.sliding_window, 0);
    const auto qwen2 = config_of((R"({"model_type": "qwen2", "use_sliding_window": true,
        "layer_types": ["full_attention", "sliding_attention"], )" +
                                  common + "}")
                                     .c_str());
    EXPECT_TRUE(qwen2.qkv_bias);
    EXPECT_FALSE(qwen2.output_bias);
    EXPECT_EQ(qwen2.sliding_window, 4096);
    EXPECT_EQ(qwen2.first_windowed_layer, 1);
    EXPECT_EQ(qwen2.window_of(0), 0);
    EXPECT_THROW(config_of((R"({"model_type": "qwen2", "use_sliding_window": true,
        "layer_types": ["sliding_attention", "full_attention"], )" +
                            common + "}")
                               .c_str()),
                 Error);
}

TEST(ModelFiles, weights_in_several_files_are_the_same_weights) {
    const TempDir scratch;
    const spec::ModelConfig config = shape(spec::Family::llama);
    ParameterSet<float> written(config), read(config);
    initialize(written, 3);
    write_model_directory(scratch.path(), config, written, {});
    write_model_directory(scratch.path(), config, written, {.shard_bytes_max = 1000});
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "model.safetensors"));
    const Json index = Json::parse(read_file(scratch.path() / "model.safetensors.index.json"));
    EXPECT_EQ(index.at("metadata").at("total_size").as_int(), 4 * spec::parameter_count(config));
    EXPECT_EQ(index.at("weight_map").at("lm_head.weight").as_string(),
              "model-00010-of-00010.safetensors");
    read_weights(scratch.path(), read);
    EXPECT_THAT(read.values(), testing::ElementsAreArray(written.values()));

    write_model_directory(scratch.path(), config, written, {});
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "model-00001-of-00010.safetensors"));
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "model.safetensors.index.json"));
}

TEST(ModelFiles, an_index_that_points_elsewhere_is_refused) {
    const spec::ModelConfig config = shape(spec::Family::llama);
    ParameterSet<float> weights(config);
    for (const char* index :
         {R"({"weight_map": {"model.embed_tokens.weight": "../secret"}})", R"({"weight_map": 7})",
          R"({"weight_map": {"model.embed_tokens.weight": ".hidden"}})", "{",
          R"({"weight_map": {"model.embed_tokens.weight": "other.safetensors"}})"}) {
        const TempDir scratch;
        write_safetensors(scratch.path() / "other.safetensors", {});
        write_file_atomic(scratch.path() / "model.safetensors.index.json", index);
        const auto error = run_guarded([&] { read_weights(scratch.path(), weights); });
        ASSERT_TRUE(error.has_value()) << index;
        EXPECT_EQ(error->code(), ErrorCode::data_loss) << index;
    }
    const TempDir nothing;
    const auto error = run_guarded([&] { read_weights(nothing.path(), weights); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::not_found);
}

TEST(ModelFiles, weights_of_another_shape_are_named) {
    const TempDir scratch;
    spec::ModelConfig config = shape(spec::Family::llama);
    write_model_directory(scratch.path(), config, ParameterSet<float>(config), {});
    config.hidden = 16;
    ParameterSet<float> other(config);
    const auto error = run_guarded([&] { read_weights(scratch.path(), other); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::data_loss);
    EXPECT_THAT(error->message(), testing::HasSubstr("gate_proj"));
}

std::string file_of(std::string_view header, std::string_view data,
                    std::optional<std::uint64_t> claimed = {}) {
    const std::uint64_t length = claimed.value_or(header.size());
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    return bytes.append(header).append(data);
}

TEST(Safetensors, hostile_headers_are_data_loss) {
    const TempDir scratch;
    const auto outcome = [&](const std::string& bytes) {
        const auto path = scratch.path() / "file";
        write_file_atomic(path, bytes);
        const auto error = run_guarded([&] { SafetensorsFile file(path); });
        return error ? std::string(name(error->code())) : "loaded";
    };
    const std::string one = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    EXPECT_EQ(outcome(file_of(one, "12345678")), "loaded");
    for (const std::string& bytes : {
             std::string(),
             std::string("1234567"),
             file_of(one, "12345678", UINT64_MAX),
             file_of(one, "12345678", kSafetensorsHeaderBytesMax + 1),
             file_of(one, "1234567"),
             file_of(one, "123456789"),
             file_of("[]", ""),
             file_of("{", ""),
             file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678"),
             file_of(R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", "12345678"),
             file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "12345678"),
             file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "12345678"),
             file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", "12345678"),
             file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],)"
                     R"("data_offsets":[0,8]}})",
                     "12345678"),
             file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                     "12345678"),
         }) {
        EXPECT_EQ(outcome(bytes), "data_loss") << bytes;
    }
}

TEST(Safetensors, bfloat16_becomes_float) {
    const TempDir scratch;
    const auto path = scratch.path() / "file";
    write_file_atomic(path, file_of(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})",
                                    std::string("\x80\x3f\x20\xc0", 4)));
    const SafetensorsFile file(path);
    EXPECT_THAT(file.read(file.entries()[0]), testing::ElementsAre(1.0f, -2.5f));
}

// One, minus two, the largest, the smallest of the small ones, minus zero, infinity, a NaN.
TEST(Safetensors, half_precision_becomes_float) {
    const TempDir scratch;
    const auto path = scratch.path() / "file";
    const std::string bytes("\x00\x3c\x00\xc0\xff\x7b\x01\x00\x00\x80\x00\x7c\x00\x7e", 14);
    write_file_atomic(path,
                      file_of(R"({"a":{"dtype":"F16","shape":[7],"data_offsets":[0,14]}})", bytes));
    const SafetensorsFile file(path);
    const std::vector<float> values = file.read(file.entries()[0]);
    EXPECT_THAT(std::span(values).first(6),
                testing::ElementsAre(1.0f, -2.0f, 65504.0f, std::ldexp(1.0f, -24), -0.0f,
                                     std::numeric_limits<float>::infinity()));
    EXPECT_TRUE(std::signbit(values[4]));
    EXPECT_TRUE(std::isnan(values[6]));
}

TEST(Safetensors, a_file_that_cannot_be_written_whole_does_not_appear) {
    const TempDir scratch;
    const auto path = scratch.path() / "model.safetensors";
    EXPECT_THROW(write_safetensors(path, {{.name = "a",
                                           .shape = {1},
                                           .values = []() -> std::vector<float> {
                                               throw Error(ErrorCode::resource_exhausted,
                                                           "disk full");
                                           }}}),
                 Error);
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

}  // namespace
}  // namespace gruca::model
