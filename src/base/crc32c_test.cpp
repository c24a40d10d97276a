#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"

namespace gruca {
namespace {

TEST(Crc32c, the_published_values) {
    EXPECT_EQ(crc32c({}), 0u);
    EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
    // RFC 3720, B.4.
    EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0x00})), 0x8a9136aau);
    EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
    std::vector<std::byte> rising(32);
    for (std::size_t i = 0; i < 32; ++i) rising[i] = static_cast<std::byte>(i);
    EXPECT_EQ(crc32c(rising), 0x46dd794eu);
}

TEST(Crc32c, a_body_may_come_in_pieces) {
    std::string text;
    for (int i = 0; i < 100; ++i) text += std::to_string(i * i);
    const std::uint32_t whole = crc32c(bytes_of(text));
    for (std::size_t cut = 0; cut <= text.size(); cut += 7) {
        const auto all = bytes_of(text);
        EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), whole) << cut;
    }
}

}  // namespace
}  // namespace gruca
