// data/bpe_trainer.h
//
// Learns byte-level BPE from word counts. Ids and merges equal those of Hugging Face's BpeTrainer
// with the special token <|endoftext|> and all 256 bytes as initial alphabet:
//
//   ids      the special token, the bytes in order of the characters that stand for them, then one
//            for each merge;
//   merges   again and again the pair with the largest count, of equals the one with the smallest
//            (left id, right id), until the vocabulary is full or no pair is frequent enough.
//
// Counts are 64 bits wide; nothing depends on the order in which words were counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/encoder.h"
#include "data/tokenizer.h"

namespace gruca::data {

// How often each piece occurs. Owned by one thread.
class WordCounts {
  public:
    void add_text(std::string_view text);  // A text of its own.
    void add(std::string_view word, std::int64_t count);
    void add_all(const WordCounts& other);

    const auto& counts() const { return counts_; }

  private:
    std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>> counts_;
};

struct BpeTraining {
    std::int64_t vocabulary;         // At least 257.
    std::int64_t min_frequency = 0;  // A pair seen less often is not merged; 0 is as 1.
    std::function<void(std::int64_t merges_done)> progress = {};  // Now and then.
};

TokenizerParts train_bpe(const WordCounts& words, const BpeTraining& training);

}  // namespace gruca::data
