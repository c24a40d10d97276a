// Model directories survive the round trip; strangers' files cannot harm.
#include "model/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/boundary.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_dir.h"
#include "model/safetensors.h"

namespace gruca::model {
namespace {

spec::ModelConfig shape(spec::Architecture architecture) {
    const bool gpt2 = architecture == spec::Architecture::gpt2;
    return {.architecture = architecture,
            .layers = 2,
            .width = 8,
            .heads = 4,
            .kv_heads = gpt2 ? 4 : 2,
            .hidden = 24,
            .context_length = 6,
            .vocabulary_size = 10,
            .tied_embeddings = gpt2,
            .rope_theta = gpt2 ? 10000.0 : 5000.0,
            .norm_epsilon = 1e-5};
}

class ModelDirectory : public testing::TestWithParam<spec::Architecture> {};

TEST_P(ModelDirectory, gives_back_the_configuration_and_the_weights_bit_for_bit) {
    const TempDir scratch;
    const spec::ModelConfig config = shape(GetParam());
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
                         testing::Values(spec::Architecture::gpt2, spec::Architecture::llama),
                         [](const auto& which) { return spec::name(which.param); });

TEST(ModelFiles, projections_of_gpt2_lie_transposed_in_the_file) {
    const TempDir scratch;
    const spec::ModelConfig config = shape(spec::Architecture::gpt2);
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
    const spec::ModelConfig config = shape(spec::Architecture::llama);
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
    EXPECT_EQ(with("attention_bias", true), "invalid_argument");
    EXPECT_EQ(with("rope_scaling", Json::object({{"rope_type", "llama3"}})), "invalid_argument");
    EXPECT_EQ(with("head_dim", 3), "invalid_argument");
    EXPECT_EQ(with("model_type", "mamba"), "invalid_argument");
    EXPECT_EQ(with("num_hidden_layers", -1), "invalid_argument");
    EXPECT_EQ(with("num_attention_heads", 0), "invalid_argument");
    EXPECT_EQ(with("some_new_key", 1), "loaded");
}

TEST(ModelFiles, weights_of_another_shape_are_named) {
    const TempDir scratch;
    spec::ModelConfig config = shape(spec::Architecture::llama);
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
