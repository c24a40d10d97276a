#include "data/permutation.h"

#include "base/check.h"

namespace gruca::data {
namespace {

constexpr std::uint64_t kRounds = 4;

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(size), philox_(seed, stream) {
    CHECK(size <= std::uint64_t{1} << 62, "a permutation of {} elements", size);
    while (std::uint64_t{1} << (2 * half_bits_) < size) ++half_bits_;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
    CHECK(index < size_, "element {} of a permutation of {}", index, size_);
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t value = index;
    do {
        std::uint64_t left = value >> half_bits_, right = value & mask;
        for (std::uint64_t round = 0; round < kRounds; ++round) {
            const std::uint64_t mixed = philox_.block(round << 32 | right)[0] & mask;
            const std::uint64_t next = left ^ mixed;
            left = right;
            right = next;
        }
        value = left << half_bits_ | right;
    } while (value >= size_);
    return value;
}

}  // namespace gruca::data
