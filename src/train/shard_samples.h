// train/shard_samples.h
//
// The token shards of a channel as samples.
#pragma once

#include "data/samples.h"
#include "train/sample_source.h"

namespace gruca::train {

class ShardSamples final : public SampleSource {
  public:
    explicit ShardSamples(const data::SampleOptions& options) : samples_(options) {}

    std::int64_t count() const override { return samples_.samples_per_epoch(); }
    void read(std::int64_t index, std::span<std::int32_t> tokens) const override {
        samples_.read_sample(index, tokens);
    }
    std::int64_t tokens() const { return samples_.tokens_per_epoch(); }
    std::uint32_t checksum() const { return samples_.checksum(); }

  private:
    const data::SampleSource samples_;
};

}  // namespace gruca::train
