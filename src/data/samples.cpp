#include "data/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "data/permutation.h"

namespace gruca::data {
namespace {

constexpr std::size_t kEpochsKept = 2;  // A step may take its samples from two.

// Each epoch draws from two streams of chance of its own.
std::uint64_t document_stream(std::int64_t epoch) {
    return 2 * static_cast<std::uint64_t>(epoch);
}
std::uint64_t window_stream(std::int64_t epoch) {
    return 2 * static_cast<std::uint64_t>(epoch) + 1;
}

}  // namespace

// The documents of an epoch in its order.
struct SampleSource::Epoch {
    std::int64_t number = 0;
    std::vector<std::int64_t> documents;
    std::vector<std::int64_t> starts;  // Of each in the stream, and the length of the stream.
};

SampleSource::SampleSource(const SampleOptions& options)
    : sequence_length_(options.sequence_length),
      seed_(options.seed),
      vocabulary_(options.vocabulary),
      shuffled_(options.shuffled),
      shards_(open_shards(options.paths)) {
    CHECK(sequence_length_ > 0, "sequence length {}", sequence_length_);
    starts_.push_back(0);
    shard_starts_.push_back(0);
    for (const auto& shard : shards_) {
        for (std::int64_t i = 0; i < shard->sequences(); ++i) {
            tokens_ += shard->length(i);
            starts_.push_back(tokens_);
        }
        shard_starts_.push_back(shard_starts_.back() + shard->sequences());
    }
    if (tokens_ <= sequence_length_) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the corpus is shorter than one sample: {} tokens in {}, but a "
                                "sample of sequence length {} takes {}",
                                tokens_, shards_.front()->prefix().string(), sequence_length_,
                                sequence_length_ + 1));
    }
}

std::uint32_t SampleSource::checksum() const {
    std::uint32_t all = 0;
    for (const auto& shard : shards_) {
        const std::uint32_t one = shard->checksum();
        all = crc32c(std::as_bytes(std::span(&one, 1)), all);
    }
    return all;
}

std::shared_ptr<const SampleSource::Epoch> SampleSource::epoch(std::int64_t number) const {
    const std::lock_guard lock(mutex_);
    for (const auto& known : recent_) {
        if (known->number == number) return known;
    }
    auto made = std::make_shared<Epoch>();
    made->number = number;
    made->documents.resize(static_cast<std::size_t>(documents()));
    std::iota(made->documents.begin(), made->documents.end(), std::int64_t{0});
    if (shuffled_) {
        const Philox chance(seed_, document_stream(number));
        for (std::size_t left = made->documents.size(); left > 1; --left) {
            std::swap(made->documents[left - 1], made->documents[chance.below(left, left)]);
        }
    }
    made->starts.push_back(0);
    for (const std::int64_t document : made->documents) {
        const auto d = static_cast<std::size_t>(document);
        made->starts.push_back(made->starts.back() + starts_[d + 1] - starts_[d]);
    }
    if (recent_.size() == kEpochsKept) recent_.erase(recent_.begin());
    recent_.push_back(made);
    return made;
}

void SampleSource::read_document(std::int64_t document, std::int64_t offset,
                                 std::span<std::int32_t> into) const {
    const auto after = std::upper_bound(shard_starts_.begin(), shard_starts_.end(), document);
    const auto shard = static_cast<std::size_t>(after - shard_starts_.begin()) - 1;
    shards_[shard]->read(document - shard_starts_[shard], offset, vocabulary_, into);
}

void SampleSource::read_sample(std::int64_t index, std::span<std::int32_t> into) const {
    CHECK(index >= 0, "sample {}", index);
    CHECK(static_cast<std::int64_t>(into.size()) == sequence_length_ + 1,
          "a sample has {} tokens, not {}", sequence_length_ + 1, into.size());
    const std::int64_t count = samples_per_epoch();
    const std::shared_ptr<const Epoch> order = epoch(index / count);
    std::int64_t window = index % count;
    if (shuffled_) {
        const Permutation shuffle(static_cast<std::uint64_t>(count), seed_,
                                  window_stream(order->number));
        window = static_cast<std::int64_t>(shuffle(static_cast<std::uint64_t>(window)));
    }
    std::int64_t at = window * sequence_length_;
    const auto& starts = order->starts;
    auto place = static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), at) -
                                          starts.begin()) -
                 1;
    for (; !into.empty(); ++place) {
        const auto there = static_cast<std::size_t>(starts[place + 1] - at);
        const std::size_t take = std::min(into.size(), there);
        read_document(order->documents[place], at - starts[place], into.first(take));
        into = into.subspan(take);
        at += static_cast<std::int64_t>(take);
    }
}

std::vector<std::int32_t> SampleSource::sample(std::int64_t index) const {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequence_length_ + 1));
    read_sample(index, tokens);
    return tokens;
}

}  // namespace gruca::data
