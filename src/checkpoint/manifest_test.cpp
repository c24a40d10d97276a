#include "checkpoint/manifest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/boundary.h"
#include "base/crc32c.h"
#include "base/text.h"

namespace gruca::checkpoint {
namespace {

Manifest a_manifest() {
    return {.step = 7,
            .meta = Json::object({{"learning_rate", 0.1},
                                  {"one", 1.0},
                                  {"large", 1e300},
                                  {"tiny", -5e-324},
                                  {"text", "\"ü\n"},
                                  {"count", std::int64_t{1} << 60}}),
            .part_bytes = {24, 8},
            .tensors = {
                {.name = "w",
                 .dtype = tensor::Dtype::f32,
                 .shape = {4, 2},
                 .pieces = {{.part = 0, .offset = 0, .crc32c = 0xffffffff, .box = {{0, 0}, {3, 2}}},
                            {.part = 1, .offset = 0, .crc32c = 1, .box = {{3, 0}, {1, 2}}}}}}};
}

std::optional<ErrorCode> error_of(std::string_view text) {
    const auto error = run_guarded([&] { read_manifest(text); });
    return error ? std::optional(error->code()) : std::nullopt;
}

TEST(Manifest, what_is_written_is_read) {
    const Manifest read = read_manifest(write_manifest(a_manifest()));
    EXPECT_EQ(read.step, 7);
    // A whole double is written as an integer is, so numbers are compared as numbers.
    EXPECT_EQ(read.meta.dump(), a_manifest().meta.dump());
    EXPECT_EQ(read.meta.at("learning_rate").as_double(), 0.1);
    EXPECT_EQ(read.meta.at("one").as_double(), 1.0);
    EXPECT_EQ(write_manifest(read), write_manifest(a_manifest()));
    ASSERT_NE(read.find("w"), nullptr);
    EXPECT_EQ(read.find("w")->pieces[0].crc32c, 0xffffffffu);
    EXPECT_EQ(read.find("v"), nullptr);
}

TEST(Manifest, no_changed_or_missing_byte_goes_unnoticed) {
    const std::string good = write_manifest(a_manifest());
    ASSERT_EQ(error_of(good), std::nullopt);
    for (std::size_t at = 0; at + 1 < good.size(); ++at) {  // The last is the line's end.
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        EXPECT_NE(error_of(bad), std::nullopt) << at << ": " << bad[at];
        EXPECT_EQ(error_of(good.substr(0, at)), ErrorCode::data_loss) << at;
    }
}

TEST(Manifest, what_says_the_same_in_other_words_is_refused) {
    const std::string good = write_manifest(a_manifest());
    // A right checksum, but not what write_manifest would have made of it.
    const auto made = [](std::string_view body) {
        return fmt::format(R"({{"format":"gruca-checkpoint","version":1,"crc32c":"{:08x}",)"
                           "\"checkpoint\":{}}}\n",
                           crc32c(bytes_of(body)), body);
    };
    EXPECT_EQ(error_of(made(R"({"step":7,"meta":null,"parts":[],"tensors":[]})")), std::nullopt);
    for (const char* body : {R"({"step":7.0,"meta":null,"parts":[],"tensors":[]})",
                             R"({"step":7,"parts":[],"tensors":[]})",
                             R"({"step":1,"step":7,"meta":null,"parts":[],"tensors":[]})",
                             R"({"step":7,"meta":null,"parts":[],"tensors":[],"more":1})"}) {
        EXPECT_EQ(error_of(made(body)), ErrorCode::data_loss) << body;
    }
    EXPECT_EQ(error_of(" " + good), ErrorCode::data_loss);
}

TEST(Manifest, a_newer_version_is_not_damage) {
    EXPECT_EQ(error_of(R"({"format": "gruca-checkpoint", "version": 2, "other": []})"),
              ErrorCode::precondition_failed);
}

TEST(Manifest, keys_sort_by_step_and_only_ours_are_ours) {
    EXPECT_EQ(manifest_key("run/", 123), "run/step-00000123/manifest.json");
    EXPECT_EQ(part_key("", 0, 1, 12), "step-00000000/part-00001-of-00012");
    EXPECT_EQ(parse_key("run/", "run/step-00000123/manifest.json")->step, 123);
    EXPECT_TRUE(parse_key("run/", "run/step-00000123/manifest.json")->is_manifest());
    EXPECT_EQ(parse_key("", manifest_key("", 123'456'789))->step, 123'456'789);
    EXPECT_FALSE(parse_key("", "step-00000123/part-00000-of-00001")->is_manifest());
    for (const char* other :
         {"run/step-00000123", "run/step-123/manifest.json", "run/step--0000123/manifest.json",
          "run/model.json", "other/step-00000123/manifest.json", "run/step-x/manifest.json"}) {
        EXPECT_FALSE(parse_key("run/", other)) << other;
    }
}

TEST(Manifest, a_prefix_ends_in_a_slash) {
    EXPECT_NO_THROW(require_prefix(""));
    EXPECT_NO_THROW(require_prefix("run/"));
    EXPECT_THROW(require_prefix("run"), Error);
}

}  // namespace
}  // namespace gruca::checkpoint
