// data/permutation.h
//
// A shuffle that is not stored: a bijection of [0, size) that is a pure function of (size, seed,
// stream). Four Feistel rounds keyed by Philox over the next power of four, walked along its cycle
// until the result is in range.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace gruca::data {

// Thread-safe.
class Permutation {
  public:
    Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream);

    // Where element `index` < size goes.
    std::uint64_t operator()(std::uint64_t index) const;

  private:
    std::uint64_t size_;
    int half_bits_ = 1;
    Philox philox_;
};

}  // namespace gruca::data
