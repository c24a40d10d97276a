#include "data/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "base/boundary.h"
#include "base/error.h"
#include "base/temp_dir.h"

namespace gruca::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Samples : public testing::Test {
  protected:
    // Shards of documents whose tokens count up from 0 over everything, so a token is its place.
    void write(const std::vector<std::vector<int>>& lengths_of_shards) {
        std::int32_t next = 0;
        int shard = 0;
        for (const auto& lengths : lengths_of_shards) {
            TokenShardWriter writer(dir.path() / std::to_string(shard++), TokenType::int32);
            for (const int length : lengths) {
                std::vector<std::int32_t> document(static_cast<std::size_t>(length));
                std::iota(document.begin(), document.end(), next);
                next += length;
                writer.add_document(document);
            }
            writer.finish();
        }
    }

    SampleSource open(std::int64_t length, std::uint64_t seed, bool shuffled = true) const {
        return SampleSource({.paths = {dir.path()},
                             .sequence_length = length,
                             .seed = seed,
                             .vocabulary = 1'000'000,
                             .shuffled = shuffled});
    }

    const TempDir dir;
};

TEST_F(Samples, stored_order_gives_windows_that_share_one_token) {
    write({{3, 0, 2}, {0, 4}});
    const SampleSource source = open(2, 0, false);
    EXPECT_EQ(source.tokens_per_epoch(), 9);
    EXPECT_EQ(source.samples_per_epoch(), 4);
    EXPECT_THAT(source.sample(0), ElementsAre(0, 1, 2));
    EXPECT_THAT(source.sample(1), ElementsAre(2, 3, 4));
    EXPECT_THAT(source.sample(3), ElementsAre(6, 7, 8));
    EXPECT_THAT(source.sample(4), ElementsAre(0, 1, 2));  // The next epoch.
}

TEST_F(Samples, an_epoch_predicts_every_token_once_but_the_first_and_the_tail) {
    write({{5, 1, 1, 0, 7}, {2, 9, 4}});  // Most documents are shorter than a sample.
    const SampleSource source = open(6, 11);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        std::multiset<std::int32_t> predicted;
        for (std::int64_t i = 0; i < source.samples_per_epoch(); ++i) {
            const auto sample = source.sample(epoch * source.samples_per_epoch() + i);
            predicted.insert(sample.begin() + 1, sample.end());
        }
        EXPECT_EQ(predicted.size(), 24u);
        EXPECT_EQ(std::set<std::int32_t>(predicted.begin(), predicted.end()).size(), 24u);
    }
}

TEST_F(Samples, documents_stay_whole_inside_the_shuffled_stream) {
    write({{10, 10, 10, 10, 10, 10}});
    const SampleSource source = open(5, 4);
    for (std::int64_t i = 0; i < source.samples_per_epoch(); ++i) {
        const auto sample = source.sample(i);
        for (std::size_t k = 1; k < sample.size(); ++k) {
            const bool is_boundary = sample[k] % 10 == 0 && sample[k - 1] % 10 == 9;
            EXPECT_TRUE(is_boundary || sample[k] == sample[k - 1] + 1);
        }
    }
}

TEST_F(Samples, seed_and_index_decide_a_sample_whatever_was_asked_before_and_by_whom) {
    write({{40, 30, 20}, {50, 60, 7}});
    const SampleSource forwards = open(8, 5), backwards = open(8, 5), other = open(8, 6);
    const std::int64_t count = 4 * forwards.samples_per_epoch();
    std::vector<std::vector<std::int32_t>> expected(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        expected[static_cast<std::size_t>(i)] = forwards.sample(i);
    }
    for (std::int64_t i = count; i-- > 0;) {
        EXPECT_EQ(backwards.sample(i), expected[static_cast<std::size_t>(i)]);
    }
    EXPECT_NE(other.sample(0), expected[0]);
    std::vector<std::jthread> ranks;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        ranks.emplace_back([&, rank] {
            for (std::int64_t i = rank; i < count; i += 4) {
                EXPECT_EQ(backwards.sample(i), expected[static_cast<std::size_t>(i)]);
            }
        });
    }
}

TEST_F(Samples, epochs_differ) {
    write({{40, 30, 20}, {50, 60, 7}});
    const SampleSource source = open(8, 5);
    EXPECT_NE(source.sample(0), source.sample(source.samples_per_epoch()));
}

TEST_F(Samples, a_known_seed_gives_known_samples) {
    write({{4, 3, 5}});
    const SampleSource source = open(3, 42);
    EXPECT_THAT(source.sample(0), ElementsAre(3, 7, 8, 9));
    EXPECT_THAT(source.sample(7), ElementsAre(0, 1, 2, 3));
}

TEST_F(Samples, a_corpus_shorter_than_a_sample_names_both_numbers) {
    write({{3, 1}});
    EXPECT_EQ(open(3, 0).samples_per_epoch(), 1);
    for (const std::int64_t length : {4, 100}) {
        const auto failure = run_guarded([&] { open(length, 0); });
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->code(), ErrorCode::invalid_argument);
        EXPECT_THAT(failure->message(), HasSubstr("4 tokens in "));
        EXPECT_THAT(failure->message(), HasSubstr("takes " + std::to_string(length + 1)));
    }
}

TEST_F(Samples, an_empty_corpus_is_too_short_and_wraps_nothing) {
    write({{}, {0}});
    EXPECT_THROW(open(1, 0), Error);
}

TEST_F(Samples, an_id_outside_the_vocabulary_stops_the_sample_that_holds_it) {
    write({{10}});
    const SampleSource source(
        {.paths = {dir.path()}, .sequence_length = 4, .seed = 0, .vocabulary = 9});
    int failures = 0;
    for (std::int64_t i = 0; i < source.samples_per_epoch(); ++i) {
        failures += run_guarded([&] { source.sample(i); }).has_value();
    }
    EXPECT_EQ(failures, 0);  // Token 9 is in the tail: windows cover 0..8.
    write({{9, 0}, {1}});
    const auto failure = run_guarded([&] { open(9, 0); });
    EXPECT_FALSE(failure);
    const SampleSource all(
        {.paths = {dir.path()}, .sequence_length = 9, .seed = 0, .vocabulary = 9});
    const auto bad = run_guarded([&] { all.sample(0); });
    ASSERT_TRUE(bad);
    EXPECT_THAT(bad->message(), HasSubstr("has the id 9, but the vocabulary has only 9 words"));
}

}  // namespace
}  // namespace gruca::data
