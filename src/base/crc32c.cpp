#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace gruca {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Reflected.

// kTables[k][b]: what byte b does to the checksum with k more bytes behind it.
constexpr auto kTables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
        tables[0][byte] = crc;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t crc = tables[k - 1][byte];
            tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
        }
    }
    return tables;
}();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
    std::uint32_t crc = ~before;
    while (bytes.size() >= 8) {
        std::array<std::uint8_t, 8> b;
        std::memcpy(b.data(), bytes.data(), 8);
        std::uint32_t next = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            next ^= kTables[7 - i][b[i] ^ ((crc >> (8 * i)) & 0xff)];
            next ^= kTables[3 - i][b[4 + i]];
        }
        crc = next;
        bytes = bytes.subspan(8);
    }
    for (const std::byte byte : bytes) {
        crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
    }
    return ~crc;
}

}  // namespace gruca
