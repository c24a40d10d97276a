// spec/subnet.h
//
// A range of IPv4 addresses, as "198.18.0.0/18" writes it, and the arithmetic on it. Pure values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gruca::spec {

struct Subnet {
    std::uint32_t base = 0;  // Its first address, host byte order.
    int prefix = 32;

    std::uint64_t size() const { return std::uint64_t{1} << (32 - prefix); }
    std::uint32_t last() const { return static_cast<std::uint32_t>(base + (size() - 1)); }
    bool contains(std::uint32_t address) const { return address >= base && address <= last(); }
    bool contains(const std::string& address) const;  // Of a text that is no address: false.
    bool overlaps(const Subnet& other) const {
        return base <= other.last() && other.base <= last();
    }
    std::string text() const;
    friend bool operator==(const Subnet&, const Subnet&) = default;
};

// "127.64.0.1" and back. Nothing when it is not four numbers from 0 to 255.
std::optional<std::uint32_t> parse_address(const std::string& text);
std::string address_text(std::uint32_t address);

// Nothing when it is not an address, '/' and 0 to 32, or the address is not the first of the range.
std::optional<Subnet> parse_subnet(const std::string& text);

// Every job shares the machine's own network: its nodes are told apart by loopback addresses.
constexpr Subnet kLoopbackNodes{.base = 0x7f400000, .prefix = 16};  // 127.64.0.0/16

}  // namespace gruca::spec
