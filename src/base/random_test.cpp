#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gruca {
namespace {

// Known answers of the authors' library Random123, kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, agrees_with_the_published_vectors) {
    using Block = std::array<std::uint32_t, 4>;
    EXPECT_EQ(Philox(0, 0).block(0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(Philox(~0ull, ~0ull).block(~0ull),
              (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(Philox(0x299f31d0a4093822, 0x0370734413198a2e).block(0x85a308d3243f6a88),
              (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, normal_numbers_have_the_right_mean_and_variance) {
    const Philox philox(7, 3);
    constexpr std::uint64_t kCount = 100000;
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) {
        const double x = philox.normal(i);
        sum += x;
        squares += x * x;
    }
    EXPECT_NEAR(sum / kCount, 0, 0.015);
    EXPECT_NEAR(squares / kCount, 1, 0.02);
}

TEST(Philox, below_stays_below) {
    const Philox philox(1, 2);
    for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_LT(philox.below(3, i), 3u);
}

TEST(Random, a_uuid_has_its_shape) {
    SystemRandom random;
    const std::string id = random.uuid();
    ASSERT_EQ(id.size(), 36u);
    EXPECT_EQ(id[8], '-');
    EXPECT_EQ(id[14], '4');
    EXPECT_NE(id, random.uuid());
}

}  // namespace
}  // namespace gruca
