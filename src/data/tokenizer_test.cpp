// The tokenizer against Hugging Face's: tests/golden/tokenizer/make.py wrote what must come out.
#include "data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "data/encoder.h"
#include "data/pieces.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

const fs::path kGolden = fs::path(GRUCA_SOURCE_DIR) / "tests/golden/tokenizer";

std::vector<std::int32_t> ids_of(const Json& json) {
    std::vector<std::int32_t> ids;
    for (const Json& id : json.as_array()) ids.push_back(static_cast<std::int32_t>(id.as_int()));
    return ids;
}

const Json& golden_cases() {
    static const Json cases = Json::parse(read_file(kGolden / "encodings.json"));
    return cases;
}

const Tokenizer& golden_tokenizer() {
    static const Tokenizer tokenizer = Tokenizer::load(kGolden / "tokenizer.json");
    return tokenizer;
}

TEST(Pieces, text_is_cut_as_the_reference_cuts_it) {
    for (const Json& item : golden_cases().as_array()) {
        const std::string& text = item.at("text").as_string();
        std::vector<std::int32_t> lengths;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = piece_end(text, at);
            lengths.push_back(static_cast<std::int32_t>(end - at));
            at = end;
        }
        EXPECT_THAT(lengths, ElementsAreArray(ids_of(item.at("piece_bytes")))) << text;
    }
}

TEST(Tokenizer, texts_are_encoded_as_the_reference_encodes_them) {
    Encoder remembering(golden_tokenizer());
    for (int round = 0; round < 2; ++round) {
        for (const Json& item : golden_cases().as_array()) {
            const std::string& text = item.at("text").as_string();
            std::vector<std::int32_t> ids;
            remembering.append(text, ids);
            EXPECT_THAT(ids, ElementsAreArray(ids_of(item.at("ids")))) << text;
        }
    }
}

TEST(Tokenizer, special_tokens_are_found_only_when_asked_for) {
    int with_special = 0;
    for (const Json& item : golden_cases().as_array()) {
        const std::string& text = item.at("text").as_string();
        const Json* special = item.find("ids_with_special_tokens");
        with_special += special != nullptr;
        const Json& expected = special != nullptr ? *special : item.at("ids");
        EXPECT_THAT(golden_tokenizer().encode_with_special_tokens(text),
                    ElementsAreArray(ids_of(expected)))
            << text;
    }
    EXPECT_GE(with_special, 3);
}

TEST(Tokenizer, decoding_gives_every_byte_back_even_of_what_is_no_text) {
    Philox chance(1, 1);
    for (std::uint64_t round = 0; round < 200; ++round) {
        std::string bytes;
        for (std::uint64_t i = 0; i < round; ++i) {
            bytes += static_cast<char>(chance.below(256, 1000 * round + i));
        }
        EXPECT_EQ(golden_tokenizer().decode(golden_tokenizer().encode(bytes)), bytes);
    }
    for (const Json& item : golden_cases().as_array()) {
        EXPECT_EQ(golden_tokenizer().decode(ids_of(item.at("ids"))), item.at("text").as_string());
    }
}

TEST(Tokenizer, special_tokens_are_decoded_or_left_out) {
    const std::vector<std::int32_t> ids =
        golden_tokenizer().encode_with_special_tokens("a<|endoftext|>b");
    EXPECT_EQ(golden_tokenizer().decode(ids), "a<|endoftext|>b");
    EXPECT_EQ(golden_tokenizer().decode(ids, false), "ab");
    EXPECT_EQ(golden_tokenizer().end_of_text(), 0);
}

TEST(Tokenizer, an_id_without_a_token_is_refused) {
    for (const std::int32_t id : {-1, 700, 1 << 30}) {
        EXPECT_THROW(golden_tokenizer().decode(std::vector<std::int32_t>{id}), Error) << id;
    }
}

TEST(Tokenizer, long_pieces_merge_as_short_ones_do_and_do_not_take_for_ever) {
    // Of length 32 the pairs are searched, of 33 a heap is kept; both must go left first.
    for (const std::size_t length : {31u, 32u, 33u, 34u, 100u}) {
        std::string text;
        for (std::size_t i = 0; i < length; ++i) text += "thelantern"[i % 10];
        std::vector<std::int32_t> ids;
        golden_tokenizer().encode_piece(text, ids);
        EXPECT_EQ(golden_tokenizer().decode(ids), text);
    }
    const std::string one_letter(2'000'000, 'a');
    EXPECT_EQ(golden_tokenizer().decode(golden_tokenizer().encode(one_letter)), one_letter);
}

TEST(TokenizerJson, what_is_written_is_what_the_reference_writes) {
    const std::string text = read_file(kGolden / "tokenizer.json");
    EXPECT_EQ(write_tokenizer_json(parse_tokenizer_json(text)), text);
}

TEST(TokenizerJson, merges_are_read_as_pairs_and_as_text) {
    Json json = Json::parse(read_file(kGolden / "tokenizer.json"));
    Json model = json.at("model");
    Json merges = Json::array();
    for (const Json& merge : model.at("merges").as_array()) {
        merges.push(merge.as_array()[0].as_string() + " " + merge.as_array()[1].as_string());
    }
    model.set("merges", merges);
    json.set("model", model);
    EXPECT_EQ(parse_tokenizer_json(json.dump()).merges, golden_tokenizer().parts().merges);
}

TEST(TokenizerJson, a_whole_word_beats_the_merges_when_they_are_ignored) {
    TokenizerParts parts = golden_tokenizer().parts();
    parts.words.push_back("zq");  // No merge leads to it.
    EXPECT_EQ(Tokenizer(parts).encode("zq").size(), 2u);
    parts.ignore_merges = true;
    EXPECT_THAT(Tokenizer(parts).encode("zq"), ElementsAre(700));
    EXPECT_TRUE(parse_tokenizer_json(write_tokenizer_json(parts)).ignore_merges);
}

TEST(TokenizerJson, what_is_not_understood_is_refused_by_name) {
    const std::string good = read_file(kGolden / "tokenizer.json");
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return text.replace(at, from.size(), to);
    };
    const std::vector<std::pair<std::string, std::string>> cases = {
        {changed("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}"), "normalizer"},
        {changed("\"truncation\": null", "\"truncation\": {\"max_length\": 5}"), "truncation"},
        {changed("\"ByteLevel\"", "\"Whitespace\""), "pre_tokenizer"},
        {changed("\"add_prefix_space\": false", "\"add_prefix_space\": true"), "add_prefix_space"},
        {changed("\"use_regex\": true", "\"use_regex\": false"), "use_regex"},
        {changed("\"post_processor\": null", "\"post_processor\": {\"type\": \"BertProcessing\"}"),
         "BertProcessing"},
        {changed("\"BPE\"", "\"Unigram\""), "Unigram"},
        {changed("\"dropout\": null", "\"dropout\": 0.1"), "model.dropout"},
        {changed("\"byte_fallback\": false", "\"byte_fallback\": true"), "model.byte_fallback"},
        {changed("\"lstrip\": false", "\"lstrip\": true"), "lstrip"},
        {changed("\"special\": true", "\"special\": false"), "not special"},
        {changed("\"#\": 3", "\"#\": 2"), "two tokens have the id 2"},
        {changed("\"#\": 3", "\"#\": -3"), "-3"},
        {changed("\"#\": 3", "\"#\": 3000000"), "3000000"},
        {changed("\"#\": 3", "\"## \": 3"), "alphabet"},
        {"{}", "pre_tokenizer"},
        {"[]", "pre_tokenizer"},
        {"{", "not JSON"}};
    for (const auto& [text, expected] : cases) {
        const auto failure = run_guarded([&, &json = text] { parse_tokenizer_json(json); });
        ASSERT_TRUE(failure) << expected;
        EXPECT_EQ(failure->code(), ErrorCode::invalid_argument);
        EXPECT_THAT(failure->message(), HasSubstr(expected));
    }
}

TEST(TokenizerJson, a_missing_byte_or_a_merge_without_its_word_is_refused) {
    TokenizerParts parts = golden_tokenizer().parts();
    for (std::string& word : parts.words) {
        if (word == "Q") word.clear();
    }
    const auto failure = run_guarded([&] { Tokenizer tokenizer(parts); });
    ASSERT_TRUE(failure);
    EXPECT_THAT(failure->message(), HasSubstr("0x51"));
    std::string text = read_file(kGolden / "tokenizer.json");
    text.insert(text.find("\": 257"), "QQ");  // The word of the first merge has another name.
    EXPECT_THROW(parse_tokenizer_json(text), Error);
}

// The files of real models, where someone has put them.
TEST(TokenizerOfGpt2, known_texts_have_their_known_ids) {
    const fs::path directory = fs::path(GRUCA_SOURCE_DIR) / "../shared/data/tokenizers/gpt2";
    if (!fs::exists(directory)) GTEST_SKIP() << "no folder " << directory;
    Json merges = Json::array();
    const std::vector<std::string> lines = split(read_file(directory / "vocab.bpe"), '\n');
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (!lines[i].empty()) merges.push(lines[i]);
    }
    Json json = Json::parse(read_file(kGolden / "tokenizer.json"));
    json.set(
        "added_tokens",
        Json::array({Json::object({{"id", 50256}, {"content", kEndOfText}, {"special", true}})}));
    json.set("model", Json::object({{"type", "BPE"},
                                    {"vocab", Json::parse(read_file(directory / "encoder.json"))},
                                    {"merges", merges}}));
    const Tokenizer gpt2(parse_tokenizer_json(json.dump()));
    EXPECT_THAT(gpt2.encode("Hello, world!"), ElementsAre(15496, 11, 995, 0));
    EXPECT_THAT(gpt2.encode("I'm DON'T we'll 'S"),
                ElementsAre(40, 1101, 23917, 6, 51, 356, 1183, 705, 50));
    EXPECT_THAT(gpt2.encode("a\n\nb\r\n\r\n  c"),
                ElementsAre(64, 198, 198, 65, 201, 198, 201, 198, 220, 269));
    EXPECT_THAT(gpt2.encode("\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8"),
                ElementsAre(33768, 98, 17312, 105, 45739, 252, 5641, 24336, 25084, 43302));
    EXPECT_THAT(gpt2.encode("<|endoftext|>"), ElementsAre(27, 91, 437, 1659, 5239, 91, 29));
    EXPECT_THAT(gpt2.encode_with_special_tokens("<|endoftext|>"), ElementsAre(50256));
    EXPECT_EQ(gpt2.vocabulary(), 50257);
}

}  // namespace
}  // namespace gruca::data
