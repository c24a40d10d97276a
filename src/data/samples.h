// data/samples.h
//
// What a trainer reads: sample number i, for every i from 0 without end. It is a pure function of
// the shards, the sequence length and the seed, so it does not depend on who asks, in which order,
// how many ranks there are or whether training was interrupted.
//
// Epoch e holds each document once, in an order of its own. The documents are laid end to end and
// the stream is cut into windows: window w begins at token w * sequence_length and has
// sequence_length + 1 tokens, the last of which is the first of the next window, so every token but
// the very first is predicted once. The tail that fills no window is left out; another epoch has
// another tail. The windows of an epoch are shuffled too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/token_shard.h"

namespace gruca::data {

struct SampleOptions {
    std::vector<std::filesystem::path> paths;  // As for open_shards.
    std::int64_t sequence_length;
    std::uint64_t seed;
    std::int64_t vocabulary;  // Ids must be below it.
    bool shuffled = true;     // false: documents and windows in stored order, for evaluation.
};

// Thread-safe.
class SampleSource {
  public:
    // Throws invalid_argument when there are fewer than sequence_length + 1 tokens, with both
    // numbers; not_found when there is no shard.
    explicit SampleSource(const SampleOptions& options);

    std::int64_t sequence_length() const { return sequence_length_; }
    std::int64_t tokens_per_epoch() const { return tokens_; }
    std::int64_t samples_per_epoch() const { return (tokens_ - 1) / sequence_length_; }
    std::int64_t documents() const { return static_cast<std::int64_t>(starts_.size()) - 1; }

    // Of the names and indexes of the shards: differs for those who read different files.
    std::uint32_t checksum() const;

    // The sequence_length + 1 tokens of sample `index` >= 0. An id out of the vocabulary throws
    // invalid_argument and names its place.
    std::vector<std::int32_t> sample(std::int64_t index) const;
    void read_sample(std::int64_t index, std::span<std::int32_t> into) const;

  private:
    struct Epoch;

    std::shared_ptr<const Epoch> epoch(std::int64_t number) const;
    void read_document(std::int64_t document, std::int64_t offset,
                       std::span<std::int32_t> into) const;

    const std::int64_t sequence_length_;
    const std::uint64_t seed_;
    const std::int64_t vocabulary_;
    const bool shuffled_;
    std::vector<std::shared_ptr<const TokenShard>> shards_;
    std::vector<std::int64_t>
        shard_starts_;                  // First document of each shard, and one past the last.
    std::vector<std::int64_t> starts_;  // Of each document in stored order, in tokens.
    std::int64_t tokens_ = 0;

    mutable std::mutex mutex_;                                  // Guards the member below.
    mutable std::vector<std::shared_ptr<const Epoch>> recent_;  // Two at most.
};

}  // namespace gruca::data
