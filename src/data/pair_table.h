// data/pair_table.h
//
// From a pair of token ids to its merge: a hash table made once and looked into very often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gruca::data {

struct RankedMerge {
    std::int32_t rank = kNone;
    std::int32_t result = 0;

    static constexpr std::int32_t kNone = INT32_MAX;
};

// Thread-safe once filled.
class PairTable {
  public:
    explicit PairTable(std::size_t pairs_max) {
        std::size_t slots = 16;
        while (slots < 2 * pairs_max) slots *= 2;
        slots_.resize(slots);
    }

    // Of two merges of one pair the later one counts.
    void set(std::int32_t left, std::int32_t right, RankedMerge merge) {
        const std::uint64_t key = key_of(left, right);
        Slot& slot = slots_[place_of(key)];
        slot.key = key;
        slot.merge = merge;
    }

    RankedMerge find(std::int32_t left, std::int32_t right) const {
        return slots_[place_of(key_of(left, right))].merge;
    }

  private:
    struct Slot {
        std::uint64_t key = kEmpty;
        RankedMerge merge = {};
    };

    static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

    static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
        return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
               static_cast<std::uint32_t>(right);
    }

    // The slot of `key`, or the empty one where it would be. At least half of the slots are empty.
    std::size_t place_of(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t place = static_cast<std::size_t>(key * 0x9E3779B97F4A7C15u >> 20) & mask;
        while (slots_[place].key != key && slots_[place].key != kEmpty) place = (place + 1) & mask;
        return place;
    }

    std::vector<Slot> slots_;
};

}  // namespace gruca::data
