#include "data/bpe_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "data/byte_alphabet.h"

namespace gruca::data {
namespace {

const std::filesystem::path kGolden =
    std::filesystem::path(GRUCA_SOURCE_DIR) / "tests/golden/tokenizer";

std::vector<std::string> golden_documents() {
    const std::string text = read_file(kGolden / "corpus.txt");
    const std::string border = "=====\n";
    std::vector<std::string> documents;
    for (std::size_t at = 0;;) {
        const std::size_t end = text.find(border, at);
        documents.push_back(text.substr(at, end - at));
        if (end == std::string::npos) return documents;
        at = end + border.size();
    }
}

WordCounts golden_words() {
    WordCounts words;
    for (const std::string& document : golden_documents()) words.add_text(document);
    return words;
}

std::string merges_of(const TokenizerParts& parts) {
    std::string text;
    for (const auto& merge : parts.merges) {
        text += spell_bytes(parts.words[static_cast<std::size_t>(merge.left)]) + ' ' +
                spell_bytes(parts.words[static_cast<std::size_t>(merge.right)]) + '\n';
    }
    return text;
}

TEST(BpeTrainer, the_file_it_leads_to_is_that_of_the_reference) {
    const TokenizerParts parts = train_bpe(golden_words(), {.vocabulary = 700});
    EXPECT_EQ(write_tokenizer_json(parts), read_file(kGolden / "tokenizer.json"));
}

TEST(BpeTrainer, every_merge_to_the_last_is_that_of_the_reference) {
    const TokenizerParts parts = train_bpe(golden_words(), {.vocabulary = 100'000});
    EXPECT_EQ(merges_of(parts), read_file(kGolden / "all_merges.txt"));
}

TEST(BpeTrainer, the_order_of_the_words_changes_nothing) {
    std::vector<std::string> documents = golden_documents();
    WordCounts words, last_first;
    for (const std::string& document : documents) words.add_text(document);
    for (auto document = documents.rbegin(); document != documents.rend(); ++document) {
        WordCounts one;
        one.add_text(*document);
        last_first.add_all(one);
    }
    EXPECT_EQ(train_bpe(words, {.vocabulary = 700}).merges,
              train_bpe(last_first, {.vocabulary = 700}).merges);
}

TEST(BpeTrainer, counts_beyond_32_bits_are_counts) {
    WordCounts words;
    words.add("ab", 3'000'000'000);
    words.add("cd", 2'000'000'000);
    words.add("ce", 1);
    const TokenizerParts parts = train_bpe(words, {.vocabulary = 258});
    EXPECT_EQ(merges_of(parts), "a b\n");
}

TEST(BpeTrainer, equal_counts_go_to_the_smaller_ids_and_not_to_the_first_seen) {
    WordCounts words;
    for (const char* word : {"xy", "ba", "ab"}) words.add(word, 5);
    EXPECT_EQ(merges_of(train_bpe(words, {.vocabulary = 260})), "a b\nb a\nx y\n");
}

TEST(BpeTrainer, repeated_letters_are_merged_from_the_left) {
    WordCounts words;
    words.add("aaaaa", 1);
    EXPECT_EQ(merges_of(train_bpe(words, {.vocabulary = 300})), "a a\naa a\naa aaa\n");
}

TEST(BpeTrainer, a_pair_below_the_minimum_is_not_merged) {
    WordCounts words;
    words.add("ab", 3);
    words.add("cd", 2);
    EXPECT_EQ(merges_of(train_bpe(words, {.vocabulary = 300, .min_frequency = 3})), "a b\n");
}

TEST(BpeTrainer, no_text_gives_the_bytes_alone) {
    const TokenizerParts parts = train_bpe(WordCounts(), {.vocabulary = 300});
    EXPECT_EQ(parts.words.size(), 257u);
    EXPECT_EQ(Tokenizer(parts).decode(Tokenizer(parts).encode("any")), "any");
}

}  // namespace
}  // namespace gruca::data
