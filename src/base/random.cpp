#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace gruca {

std::uint64_t Random::next_u64() {
    std::uint64_t value = 0;
    fill(std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

std::string Random::hex_id(std::size_t digits) {
    std::string bytes((digits + 1) / 2, '\0');
    fill(std::as_writable_bytes(std::span(bytes)));
    return hex(bytes_of(bytes)).substr(0, digits);
}

std::string Random::uuid() {
    std::string id = hex_id(32);
    id[12] = '4';
    id[16] = "89ab"[next_u64() & 3];
    for (const std::size_t at : {8u, 13u, 18u, 23u}) id.insert(at, "-");
    return id;
}

std::string Random::word(std::size_t length, std::string_view alphabet) {
    CHECK(!alphabet.empty());
    std::string text;
    while (text.size() < length) text += alphabet[next_u64() % alphabet.size()];
    return text;
}

void SystemRandom::fill(std::span<std::byte> into) {
    while (!into.empty()) {
        const ssize_t got = ::getrandom(into.data(), into.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno("cannot read random bytes");
        into = into.subspan(static_cast<std::size_t>(got));
    }
}

std::array<std::uint32_t, 4> Philox::block(std::uint64_t index) const {
    constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
    constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
    std::array<std::uint32_t, 4> x = {
        static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
        static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)};
    auto key0 = static_cast<std::uint32_t>(seed_);
    auto key1 = static_cast<std::uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{kMultiplier0} * x[0];
        const std::uint64_t product1 = std::uint64_t{kMultiplier1} * x[2];
        x = {static_cast<std::uint32_t>(product1 >> 32) ^ x[1] ^ key0,
             static_cast<std::uint32_t>(product1),
             static_cast<std::uint32_t>(product0 >> 32) ^ x[3] ^ key1,
             static_cast<std::uint32_t>(product0)};
        key0 += kWeyl0;
        key1 += kWeyl1;
    }
    return x;
}

std::uint64_t Philox::u64(std::uint64_t index) const {
    const auto words = block(index / 2);
    const std::size_t half = index % 2 * 2;
    return std::uint64_t{words[half]} << 32 | words[half + 1];
}

double Philox::uniform(std::uint64_t index) const {
    return static_cast<double>(u64(index) >> 11) * 0x1p-53;
}

double Philox::normal(std::uint64_t index) const {
    const auto words = block(index / 2);
    const std::uint64_t a = std::uint64_t{words[0]} << 32 | words[1];
    const std::uint64_t b = std::uint64_t{words[2]} << 32 | words[3];
    const double u = (static_cast<double>(a >> 11) + 1) * 0x1p-53;  // In (0, 1].
    const double angle = 2 * std::numbers::pi * static_cast<double>(b >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2 * std::log(u));
    return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

std::uint64_t Philox::below(std::uint64_t bound, std::uint64_t index) const {
    CHECK(bound > 0);
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{u64(index)} * bound >> 64);
}

}  // namespace gruca
