#include "data/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "data/token_shard.h"
#include "data/tokenizer.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const ManualClock kClock{TimePoint()};

std::string content_of(const fs::path& path) {
    return fs::exists(path) ? read_file(path) : "absent";
}

class Commands : public testing::Test {
  protected:
    Commands() {
        fs::create_directories(dir.path() / "text/sub");
        write("text/a.txt", "the lantern and the theatre and the lake");
        write("text/b.jsonl",
              "{\"text\":\"\"}\n{\"text\":\"one\\ntwo\"}\n{\"text\":\"the end\"}\n");
        write("text/empty.txt", "");
        for (int i = 0; i < 40; ++i) {
            std::string body;
            for (int k = 0; k <= i; ++k) body += "the line " + std::to_string(k * i) + "\n";
            write("text/sub/" + std::to_string(100 + i) + ".rst", body);
        }
    }

    void write(const std::string& name, std::string_view content) {
        write_file_atomic(dir.path() / name, content);
    }

    TrainTokenizerResult train(int workers = 2, std::int64_t vocabulary = 300) {
        return train_tokenizer({.input = {.paths = {dir.path() / "text"}},
                                .vocabulary = vocabulary,
                                .output = dir.path() / "tok/tokenizer.json",
                                .workers = workers},
                               kClock, {});
    }

    TokenizeOptions options(const std::string& output, double validation = 0) const {
        return {.input = {.paths = {dir.path() / "text"}},
                .tokenizer = dir.path() / "tok/tokenizer.json",
                .output = dir.path() / output,
                .validation_fraction = validation,
                .workers = 2};
    }

    const TempDir dir;
};

TEST_F(Commands, the_number_of_workers_changes_no_byte) {
    std::vector<std::string> tokenizers, shards;
    for (const int workers : {1, 2, 3, 8}) {
        train(workers);
        tokenizers.push_back(content_of(dir.path() / "tok/tokenizer.json"));
        TokenizeOptions with_workers = options("out", 0.1);
        with_workers.workers = workers;
        tokenize(with_workers, kClock, {});
        std::string all;
        for (const char* name : {"train/tokens.bin", "train/tokens.idx", "validation/tokens.bin",
                                 "validation/tokens.idx"}) {
            all += content_of(dir.path() / "out" / name);
        }
        shards.push_back(all);
    }
    EXPECT_THAT(tokenizers, testing::Each(tokenizers[0]));
    EXPECT_THAT(shards, testing::Each(shards[0]));
}

TEST_F(Commands, every_document_comes_back_in_order_with_its_end) {
    train();
    const TokenizeResult result = tokenize(options("out"), kClock, {});
    EXPECT_EQ(result.read.files, 43);
    EXPECT_EQ(result.read.documents, 45);
    EXPECT_EQ(result.train_documents, 45);
    const Tokenizer tokenizer = Tokenizer::load(dir.path() / "tok/tokenizer.json");
    const TokenShard shard(dir.path() / "out/train/tokens");
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < shard.sequences(); ++i) {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(shard.length(i)));
        shard.read(i, 0, tokenizer.vocabulary(), ids);
        texts.push_back(tokenizer.decode(ids));
    }
    ASSERT_EQ(texts.size(), 45u);
    EXPECT_EQ(texts[0], "the lantern and the theatre and the lake<|endoftext|>");
    EXPECT_EQ(texts[1], "<|endoftext|>");
    EXPECT_EQ(texts[2], "one\ntwo<|endoftext|>");
    EXPECT_EQ(texts[4], "<|endoftext|>");
    EXPECT_EQ(texts[6], "the line 0\nthe line 1\n<|endoftext|>");
    EXPECT_EQ(result.train_tokens, shard.tokens());
}

TEST_F(Commands, validation_takes_every_nth_document_and_train_the_rest) {
    train();
    tokenize(options("whole"), kClock, {});
    const TokenizeResult result = tokenize(options("out", 0.25), kClock, {});
    EXPECT_EQ(result.validation_documents, 11);
    EXPECT_EQ(result.train_documents, 34);
    const TokenShard whole(dir.path() / "whole/train/tokens"),
        split(dir.path() / "out/validation/tokens");
    for (std::int64_t i = 0; i < 11; ++i) {
        EXPECT_TRUE(std::ranges::equal(split.raw(i), whole.raw(4 * i + 3)));
    }
    // Without a split nothing of an earlier one is left to be mistaken.
    tokenize(options("out"), kClock, {});
    EXPECT_FALSE(fs::exists(dir.path() / "out/validation/tokens.idx"));
}

TEST_F(Commands, validation_has_the_share_that_was_asked_for) {
    train();
    for (const auto& [fraction, documents] :
         {std::pair(0.35, 15), {0.4, 18}, {0.5, 22}, {0.02222222222222222, 1}, {0.9, 40}}) {
        const TokenizeResult result = tokenize(options("out", fraction), kClock, {});
        EXPECT_EQ(result.validation_documents, documents) << fraction;
        EXPECT_EQ(result.train_documents, 45 - documents) << fraction;
    }
}

TEST_F(Commands, a_split_that_takes_nothing_is_refused) {
    train();
    const auto failure = run_guarded([&] { tokenize(options("out", 0.001), kClock, {}); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), ErrorCode::invalid_argument);
    EXPECT_THAT(failure->message(), HasSubstr("45"));
    EXPECT_FALSE(fs::exists(dir.path() / "out/train/tokens.bin"));
    for (const double fraction : {-0.1, 1.0, std::nan("")}) {
        EXPECT_THROW(tokenize(options("out", fraction), kClock, {}), Error);
    }
}

TEST_F(Commands, a_bad_line_ends_the_command_names_itself_and_leaves_nothing) {
    train();
    for (int i = 0; i < 100; ++i) write("text/sub/z" + std::to_string(i) + ".txt", "more");
    write("text/sub/109.jsonl", "{\"text\":\"fine\"}\n{\"text\":\n");
    for (const int workers : {1, 4}) {
        TokenizeOptions with_workers = options("out", 0.1);
        with_workers.workers = workers;
        const auto failure = run_guarded([&] { tokenize(with_workers, kClock, {}); });
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->code(), ErrorCode::invalid_argument);
        EXPECT_THAT(failure->what(), HasSubstr("109.jsonl:2"));
        EXPECT_TRUE(fs::is_empty(dir.path() / "out/train"));
        const auto training = run_guarded([&] { this->train(workers); });
        ASSERT_TRUE(training);
        EXPECT_THAT(training->what(), HasSubstr("109.jsonl:2"));
    }
}

TEST_F(Commands, a_large_file_is_handed_on_in_pieces) {
    train();
    std::string lines;
    for (int i = 0; i < 30'000; ++i) {
        lines += "{\"text\":\"" + std::to_string(i) + std::string(100, '%') + "\"}\n";
    }
    write("text/large.jsonl", lines);
    const TokenizeResult result = tokenize(options("out"), kClock, {});
    EXPECT_EQ(result.train_documents, 30'045);
    EXPECT_GT(result.train_tokens, 3'000'000);
}

TEST_F(Commands, progress_ends_with_everything_done) {
    std::vector<DataProgress> seen;
    const ProgressCallback remember = [&](const DataProgress& progress) {
        seen.push_back(progress);
    };
    train_tokenizer({.input = {.paths = {dir.path() / "text"}},
                     .vocabulary = 300,
                     .output = dir.path() / "t.json"},
                    kClock, remember);
    ASSERT_GE(seen.size(), 2u);
    EXPECT_EQ(seen[0].stage, "counting words");
    EXPECT_EQ(seen[0].files_done, 43);
    EXPECT_EQ(seen[0].bytes_done, seen[0].bytes);
    EXPECT_EQ(seen.back().stage, "merging");
    EXPECT_EQ(seen.back().bytes_done, 43);
}

TEST_F(Commands, a_vocabulary_or_worker_count_out_of_range_is_refused) {
    for (const std::int64_t vocabulary : {-1, 0, 256, 1'000'001}) {
        EXPECT_THROW(train(1, vocabulary), Error) << vocabulary;
    }
    EXPECT_EQ(train(1, 257).merges, 0);
    EXPECT_THROW(train(-1), Error);
    EXPECT_THROW(train(1000), Error);
}

TEST_F(Commands, statistics_know_what_a_simple_text_is_worth) {
    train(1, 257);  // Bytes alone: ids are known.
    fs::remove_all(dir.path() / "text");
    fs::create_directories(dir.path() / "text");
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "abcd";
    for (const char* name : {"text/1.txt", "text/2.txt"}) write(name, text);
    tokenize(options("out", 0.5), kClock, {});
    const TextStatistics statistics =
        text_statistics({.train = dir.path() / "out/train",
                         .validation = dir.path() / "out/validation",
                         .tokenizer = dir.path() / "tok/tokenizer.json"});
    EXPECT_EQ(statistics.validation_tokens, 20'001);
    EXPECT_NEAR(statistics.bytes_per_token, 1, 0.001);
    EXPECT_NEAR(statistics.unigram_nats, std::log(4), 0.02);
    EXPECT_NEAR(statistics.bigram_nats, 0, 0.01);
    EXPECT_NEAR(statistics.gzip_nats, 0, 0.05);
    EXPECT_GT(statistics.gzip_nats, 0);
    EXPECT_GT(statistics.gzip_validation_nats, statistics.gzip_nats);
}

}  // namespace
}  // namespace gruca::data
