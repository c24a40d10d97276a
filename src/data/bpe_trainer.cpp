#include "data/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "base/check.h"
#include "data/byte_alphabet.h"
#include "data/pieces.h"

namespace gruca::data {
namespace {

constexpr std::int64_t kProgressEvery = 256;  // Merges.

using Pair = std::uint64_t;  // Left id above, right id below: ordered as (left, right).

Pair pair_of(std::int32_t left, std::int32_t right) {
    return Pair{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

class Trainer {
  public:
    Trainer(const WordCounts& words, const BpeTraining& training) : training_(training) {
        start_vocabulary();
        split_words(words);
    }

    TokenizerParts run() {
        for (const auto& [pair, facts] : pairs_) queue_.push({facts.count, pair});
        const std::int64_t count_min = std::max<std::int64_t>(1, training_.min_frequency);
        while (static_cast<std::int64_t>(parts_.words.size()) < training_.vocabulary) {
            if (queue_.empty()) break;
            const Candidate best = queue_.top();
            queue_.pop();
            const auto facts = pairs_.find(best.pair);
            // A pair whose count has changed since is in the queue again with the new one, if that
            // grew; if it fell, it is put back here.
            if (facts == pairs_.end()) continue;
            if (facts->second.count != best.count) {
                if (facts->second.count < best.count) queue_.push({facts->second.count, best.pair});
                continue;
            }
            if (best.count < count_min) break;
            merge(best.pair);
            const auto done = static_cast<std::int64_t>(parts_.merges.size());
            if (training_.progress && done % kProgressEvery == 0) training_.progress(done);
        }
        return std::move(parts_);
    }

  private:
    struct Candidate {
        std::int64_t count;
        Pair pair;
        bool operator<(const Candidate& other) const {
            return count != other.count ? count < other.count : pair > other.pair;
        }
    };
    struct PairFacts {
        std::int64_t count = 0;
        std::vector<std::uint32_t> words;  // Where it is, or was; a word may be named twice.
    };
    struct Word {
        std::vector<std::int32_t> ids;
        std::int64_t count;
    };

    void start_vocabulary() {
        parts_.words.emplace_back();
        parts_.special_tokens[0] = kEndOfText;
        for (const std::uint8_t byte : bytes_in_alphabet_order()) {
            byte_ids_[byte] = static_cast<std::int32_t>(parts_.words.size());
            parts_.words.emplace_back(1, static_cast<char>(byte));
            ids_[parts_.words.back()] = byte_ids_[byte];
        }
    }

    void split_words(const WordCounts& words) {
        CHECK(words.counts().size() < UINT32_MAX, "{} words", words.counts().size());
        for (const auto& [text, count] : words.counts()) {
            const auto number = static_cast<std::uint32_t>(words_.size());
            Word word{.ids = {}, .count = count};
            for (const char c : text) word.ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
            for (std::size_t i = 0; i + 1 < word.ids.size(); ++i) {
                change(pair_of(word.ids[i], word.ids[i + 1]), count, number);
            }
            words_.push_back(std::move(word));
        }
    }

    void change(Pair pair, std::int64_t by, std::uint32_t word) {
        PairFacts& facts = pairs_[pair];
        facts.count += by;
        if (by > 0 && (facts.words.empty() || facts.words.back() != word)) {
            facts.words.push_back(word);
        }
    }

    void merge(Pair pair) {
        const auto left = static_cast<std::int32_t>(pair >> 32);
        const auto right = static_cast<std::int32_t>(pair & 0xFFFFFFFFu);
        const std::string text = parts_.words[static_cast<std::size_t>(left)] +
                                 parts_.words[static_cast<std::size_t>(right)];
        // Another merge may have made the same word; then it keeps its id.
        const auto [known, is_new] =
            ids_.emplace(text, static_cast<std::int32_t>(parts_.words.size()));
        if (is_new) parts_.words.push_back(text);
        const std::int32_t result = known->second;
        parts_.merges.push_back({.left = left, .right = right, .result = result});
        const std::vector<std::uint32_t> places = std::move(pairs_[pair].words);
        pairs_.erase(pair);
        grown_.clear();
        for (const std::uint32_t place : places) merge_in_word(place, left, right, result);
        pairs_.erase(pair);  // "aaa" counts a pair that the merge itself destroys.
        std::sort(grown_.begin(), grown_.end());
        grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
        for (const Pair grown : grown_) {
            const auto facts = pairs_.find(grown);
            if (facts != pairs_.end() && facts->second.count > 0) {
                queue_.push({facts->second.count, grown});
            }
        }
    }

    // Left to right, not overlapping.
    void merge_in_word(std::uint32_t number, std::int32_t left, std::int32_t right,
                       std::int32_t result) {
        Word& word = words_[number];
        std::vector<std::int32_t>& ids = word.ids;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < ids.size(); ++kept) {
            if (i + 1 == ids.size() || ids[i] != left || ids[i + 1] != right) {
                ids[kept] = ids[i++];
                continue;
            }
            if (kept > 0) {
                change(pair_of(ids[kept - 1], left), -word.count, number);
                grow(pair_of(ids[kept - 1], result), word.count, number);
            }
            if (i + 2 < ids.size()) {
                change(pair_of(right, ids[i + 2]), -word.count, number);
                grow(pair_of(result, ids[i + 2]), word.count, number);
            }
            ids[kept] = result;
            i += 2;
        }
        ids.resize(kept);
    }

    void grow(Pair pair, std::int64_t by, std::uint32_t word) {
        change(pair, by, word);
        grown_.push_back(pair);
    }

    const BpeTraining& training_;
    TokenizerParts parts_;
    std::int32_t byte_ids_[256] = {};
    std::unordered_map<std::string, std::int32_t> ids_;
    std::vector<Word> words_;
    std::unordered_map<Pair, PairFacts> pairs_;
    std::priority_queue<Candidate> queue_;
    std::vector<Pair> grown_;  // Of the merge being done.
};

}  // namespace

void WordCounts::add_text(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = piece_end(text, begin);
        add(text.substr(begin, end - begin), 1);
        begin = end;
    }
}

void WordCounts::add(std::string_view word, std::int64_t count) {
    const auto known = counts_.find(word);
    if (known != counts_.end()) {
        known->second += count;
    } else {
        counts_.emplace(std::string(word), count);
    }
}

void WordCounts::add_all(const WordCounts& other) {
    for (const auto& [word, count] : other.counts_) add(word, count);
}

TokenizerParts train_bpe(const WordCounts& words, const BpeTraining& training) {
    CHECK(training.vocabulary >= 257, "a vocabulary of {}", training.vocabulary);
    return Trainer(words, training).run();
}

}  // namespace gruca::data
