// base/crc32c.h
//
// CRC-32C (Castagnoli), as in iSCSI, ext4 and S3: finds damaged bytes, not forged ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gruca {

// Of `bytes` after those that gave `before`; 0 for the first. So a long body may come in pieces.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace gruca
