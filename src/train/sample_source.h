// train/sample_source.h
//
// Training samples by number: an endless, fixed order, the same for every rank. Which samples a
// step trains on follows from the step alone, so neither the number of ranks nor a restart changes
// them.
#pragma once

#include <cstdint>
#include <span>

namespace gruca::train {

// Thread-safe.
class SampleSource {
  public:
    virtual ~SampleSource() = default;

    // Distinct samples; from this number on they come again, in another order.
    virtual std::int64_t count() const = 0;

    // Fills `tokens`, context_length + 1 of them: each but the first is the target of the one
    // before.
    virtual void read(std::int64_t index, std::span<std::int32_t> tokens) const = 0;
};

}  // namespace gruca::train
