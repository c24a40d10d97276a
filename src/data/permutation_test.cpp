#include "data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace gruca::data {
namespace {

TEST(Permutation, every_element_goes_to_a_place_of_its_own) {
    for (const std::uint64_t size : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 1000u, 4097u}) {
        const Permutation permutation(size, 7, 1);
        std::set<std::uint64_t> places;
        for (std::uint64_t i = 0; i < size; ++i) places.insert(permutation(i));
        EXPECT_EQ(places.size(), size);
        EXPECT_LT(*places.rbegin(), size);
    }
}

TEST(Permutation, seed_and_stream_decide_it_and_nothing_else) {
    const auto all = [](std::uint64_t seed, std::uint64_t stream) {
        const Permutation permutation(100, seed, stream);
        std::vector<std::uint64_t> places;
        for (std::uint64_t i = 0; i < 100; ++i) places.push_back(permutation(i));
        return places;
    };
    EXPECT_EQ(all(1, 1), all(1, 1));
    EXPECT_NE(all(1, 1), all(2, 1));
    EXPECT_NE(all(1, 1), all(1, 2));
}

TEST(Permutation, neighbours_do_not_stay_together) {
    constexpr std::uint64_t kSize = 10'000;
    const Permutation permutation(kSize, 3, 0);
    int close = 0;
    double sum = 0;
    for (std::uint64_t i = 0; i + 1 < kSize; ++i) {
        const double distance =
            std::abs(static_cast<double>(permutation(i)) - static_cast<double>(permutation(i + 1)));
        close += distance < 10;
        sum += distance;
    }
    EXPECT_LT(close, 60);  // Chance alone brings about 20.
    EXPECT_NEAR(sum / kSize, kSize / 3.0, kSize / 30.0);
}

TEST(Permutation, a_huge_one_costs_nothing) {
    const std::uint64_t size = (std::uint64_t{1} << 40) + 1;
    const Permutation permutation(size, 3, 0);
    EXPECT_LT(permutation(size - 1), size);
    EXPECT_NE(permutation(0), permutation(1));
}

}  // namespace
}  // namespace gruca::data
