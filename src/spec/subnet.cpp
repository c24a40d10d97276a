#include "spec/subnet.h"

#include <fmt/format.h>

#include "base/text.h"

namespace gruca::spec {

bool Subnet::contains(const std::string& address) const {
    const std::optional<std::uint32_t> number = parse_address(address);
    return number && contains(*number);
}

std::string Subnet::text() const {
    return fmt::format("{}/{}", address_text(base), prefix);
}

std::optional<std::uint32_t> parse_address(const std::string& text) {
    const std::vector<std::string> parts = split(text, '.');
    if (parts.size() != 4) return std::nullopt;
    std::uint32_t address = 0;
    for (const std::string& part : parts) {
        const auto number = parse_int(part);
        if (!number || *number < 0 || *number > 255) return std::nullopt;
        address = address << 8 | static_cast<std::uint32_t>(*number);
    }
    return address;
}

std::string address_text(std::uint32_t address) {
    return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                       address & 255);
}

std::optional<Subnet> parse_subnet(const std::string& text) {
    const std::vector<std::string> parts = split(text, '/');
    if (parts.size() != 2) return std::nullopt;
    const auto base = parse_address(parts[0]);
    const auto prefix = parse_int(parts[1]);
    if (!base || !prefix || *prefix < 0 || *prefix > 32) return std::nullopt;
    const Subnet subnet{.base = *base, .prefix = static_cast<int>(*prefix)};
    if (*base % subnet.size() != 0) return std::nullopt;
    return subnet;
}

}  // namespace gruca::spec
