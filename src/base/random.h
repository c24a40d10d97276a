// base/random.h
//
// Two kinds of chance. `Random` gives identities and secrets, from the operating system or, in
// tests, from a seed. `Philox` is a counter-based generator: its n-th number is a pure function of
// (seed, stream, n), so initial weights and data order do not depend on who computes them, in which
// order, or on how many ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gruca {

// Thread-safe.
class Random {
  public:
    virtual ~Random() = default;
    virtual void fill(std::span<std::byte> into) = 0;

    std::uint64_t next_u64();
    std::string hex_id(std::size_t digits);  // Lower case.
    std::string uuid();                      // "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx"
    // From `alphabet`, evenly.
    std::string word(std::size_t length, std::string_view alphabet);
};

// getrandom(2): good enough for keys.
class SystemRandom final : public Random {
  public:
    void fill(std::span<std::byte> into) override;
};

// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
class Philox {
  public:
    Philox(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

    // Four random words, a pure function of (seed, stream, index).
    std::array<std::uint32_t, 4> block(std::uint64_t index) const;

    std::uint64_t u64(std::uint64_t index) const;  // Number `index` of 64-bit words.
    double uniform(std::uint64_t index) const;     // In [0, 1), 53 bits.
    double normal(std::uint64_t index) const;      // Box-Muller over pairs; double precision.
    std::uint64_t below(std::uint64_t bound,
                        std::uint64_t index) const;  // Bias below 2^-64 * bound.

  private:
    std::uint64_t seed_;
    std::uint64_t stream_;
};

}  // namespace gruca
