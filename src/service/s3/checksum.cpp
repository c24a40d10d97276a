#include "service/s3/checksum.h"

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/text.h"

namespace gruca::service::s3 {
namespace {

constexpr std::array kNames = {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"};

template <class Number>
std::string big_endian(Number number) {
    std::string raw;
    for (int shift = static_cast<int>(sizeof number) * 8 - 8; shift >= 0; shift -= 8) {
        raw += static_cast<char>(number >> shift & 0xff);
    }
    return raw;
}

class EvpDigest final : public Digest {
  public:
    explicit EvpDigest(const EVP_MD* kind) : context_(::EVP_MD_CTX_new(), ::EVP_MD_CTX_free) {
        CHECK(::EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
    }
    void update(std::span<const std::byte> bytes) override {
        ::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
    }
    std::string finish() override {
        std::array<unsigned char, EVP_MAX_MD_SIZE> raw;
        unsigned int bytes = 0;
        ::EVP_DigestFinal_ex(context_.get(), raw.data(), &bytes);
        return {raw.begin(), raw.begin() + bytes};
    }

  private:
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

class Crc32 final : public Digest {
  public:
    void update(std::span<const std::byte> bytes) override {
        crc_ = ::crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    }
    std::string finish() override { return big_endian(static_cast<std::uint32_t>(crc_)); }

  private:
    uLong crc_ = 0;
};

class Crc32c final : public Digest {
  public:
    void update(std::span<const std::byte> bytes) override { crc_ = crc32c(bytes, crc_); }
    std::string finish() override { return big_endian(crc_); }

  private:
    std::uint32_t crc_ = 0;
};

// CRC-64/NVME: polynomial ad93d23594c93659, reflected, all ones at both ends; eight bytes a step.
class Crc64Nvme final : public Digest {
  public:
    void update(std::span<const std::byte> bytes) override {
        const auto& t = tables();
        std::size_t at = 0;
        for (; at + 8 <= bytes.size(); at += 8) {
            std::uint64_t word = crc_;
            for (std::size_t i = 0; i < 8; ++i) {
                word ^= static_cast<std::uint64_t>(bytes[at + i]) << (8 * i);
            }
            crc_ = 0;
            for (std::size_t i = 0; i < 8; ++i) crc_ ^= t[7 - i][word >> (8 * i) & 0xff];
        }
        for (; at < bytes.size(); ++at) {
            crc_ = t[0][(crc_ ^ static_cast<std::uint64_t>(bytes[at])) & 0xff] ^ crc_ >> 8;
        }
    }
    std::string finish() override { return big_endian(~crc_); }

  private:
    using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

    static const Tables& tables() {
        static const Tables made = [] {
            constexpr std::uint64_t kReflected = 0x9a6c9329ac4bc9b5;
            Tables all = {};
            for (std::uint64_t i = 0; i < 256; ++i) {
                std::uint64_t crc = i;
                for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kReflected : 0);
                all[0][i] = crc;
            }
            for (std::size_t k = 1; k < 8; ++k) {
                for (std::size_t i = 0; i < 256; ++i) {
                    all[k][i] = all[k - 1][i] >> 8 ^ all[0][all[k - 1][i] & 0xff];
                }
            }
            return all;
        }();
        return made;
    }

    std::uint64_t crc_ = ~std::uint64_t{0};
};

}  // namespace

const char* header_suffix(Algorithm algorithm) {
    return kNames[static_cast<std::size_t>(algorithm)];
}

std::string upper_name(Algorithm algorithm) {
    std::string name = header_suffix(algorithm);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return name;
}

std::optional<Algorithm> algorithm_from(std::string_view name) {
    const std::string lower = to_lower(name);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (lower == kNames[i]) return static_cast<Algorithm>(i);
    }
    return std::nullopt;
}

std::unique_ptr<Digest> make_md5() {
    return std::make_unique<EvpDigest>(::EVP_md5());
}

std::unique_ptr<Digest> make_digest(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::crc32:
            return std::make_unique<Crc32>();
        case Algorithm::crc32c:
            return std::make_unique<Crc32c>();
        case Algorithm::crc64nvme:
            return std::make_unique<Crc64Nvme>();
        case Algorithm::sha1:
            return std::make_unique<EvpDigest>(::EVP_sha1());
        case Algorithm::sha256:
            return std::make_unique<EvpDigest>(::EVP_sha256());
    }
    return nullptr;
}

std::string hex_of(std::string_view raw) {
    return hex(bytes_of(raw));
}

std::string base64_of(std::string_view raw) {
    return base64(bytes_of(raw));
}

}  // namespace gruca::service::s3
