#include "net/sigv4_payload.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "net/sigv4_canonical.h"
#include "net/sigv4_claim.h"

namespace gruca::net {
namespace {

constexpr std::string_view kChunkSignature = "chunk-signature=";
constexpr std::string_view kTrailerSignature = "x-amz-trailer-signature";

}  // namespace

struct Sha256::Context {
    EVP_MD_CTX* const made = EVP_MD_CTX_new();
    ~Context() { EVP_MD_CTX_free(made); }
    void begin() const {
        CHECK(made != nullptr && EVP_DigestInit_ex(made, EVP_sha256(), nullptr) == 1,
              "SHA-256 is not available");
    }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    context_->begin();
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
    CHECK(EVP_DigestUpdate(context_->made, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

std::string Sha256::take_hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    CHECK(EVP_DigestFinal_ex(context_->made, digest.data(), &length) == 1, "SHA-256 failed");
    context_->begin();
    return hex(std::as_bytes(std::span(digest).first(length)));
}

SignedPayload::SignedPayload(PayloadRule rule)
    : rule_(std::move(rule)), last_signature_(rule_.seed_signature) {}

void SignedPayload::fail(PayloadFault fault, std::string detail) {
    if (fault_) return;
    fault_ = fault;
    detail_ = std::move(detail);
}

std::span<const std::byte> SignedPayload::take(std::span<std::byte> bytes) {
    if (fault_) return {};
    const std::size_t count = is_in_chunks() ? decode(bytes) : bytes.size();
    if (fault_) return {};
    decoded_bytes_ += is_in_chunks() ? 0 : count;
    if (rule_.form == PayloadForm::hashed) hash_.update(bytes.first(count));
    return bytes.first(count);
}

std::size_t SignedPayload::decode(std::span<std::byte> bytes) {
    std::string_view input = text_of(bytes);
    std::size_t count = 0;
    while (!fault_) {
        switch (reader_.next(input)) {
            case ChunkedReader::What::more:
                return count;
            case ChunkedReader::What::chunk:
                end_chunk();
                begin_chunk();
                break;
            case ChunkedReader::What::data: {
                const auto data = std::as_bytes(std::span(reader_.data()));
                if (signs_chunks()) hash_.update(data);
                std::memmove(bytes.data() + count, data.data(), data.size());
                count += data.size();
                decoded_bytes_ += data.size();
                if (decoded_bytes_ > rule_.decoded_bytes.value_or(decoded_bytes_)) {
                    fail(PayloadFault::wrong_length,
                         "the body is longer than X-Amz-Decoded-Content-Length");
                }
                break;
            }
            case ChunkedReader::What::end:
                if (!std::exchange(ended_, true)) end_trailers();
                if (!input.empty()) fail(PayloadFault::malformed, "there is more after the body");
                return count;
            case ChunkedReader::What::malformed:
                fail(PayloadFault::malformed, reader_.fault());
                break;
        }
    }
    return 0;
}

void SignedPayload::begin_chunk() {
    if (!signs_chunks()) return;
    const std::string_view extension = reader_.extension();
    if (!extension.starts_with(kChunkSignature)) {
        return fail(PayloadFault::malformed, "a chunk has no chunk-signature");
    }
    chunk_signature_ = extension.substr(kChunkSignature.size());
    chunk_open_ = true;
    if (reader_.size() == 0) end_chunk();  // The last one has no bytes to wait for.
}

void SignedPayload::end_chunk() {
    if (!std::exchange(chunk_open_, false)) return;
    const std::string expected = hmac_hex(
        rule_.signing_key, "AWS4-HMAC-SHA256-PAYLOAD\n" + rule_.date + "\n" + rule_.scope + "\n" +
                               last_signature_ + "\n" + sha256_hex("") + "\n" + hash_.take_hex());
    if (!equal_in_constant_time(expected, chunk_signature_)) {
        return fail(PayloadFault::signature_mismatch, "a chunk's signature is not the right one");
    }
    last_signature_ = expected;
}

void SignedPayload::end_trailers() {
    std::vector<std::string> names;
    std::string text;
    std::string signature;
    for (const auto& [field, value] : reader_.trailers().fields()) {
        const std::string name = to_lower(field);
        if (signs_chunks() && name == kTrailerSignature) {
            signature = value;
            continue;
        }
        names.push_back(name);
        text += name + ":" + value + "\n";
    }
    std::vector<std::string> promised = rule_.trailers;
    std::sort(names.begin(), names.end());
    std::sort(promised.begin(), promised.end());
    if (names != promised) {
        return fail(PayloadFault::malformed,
                    "the trailers are not the ones that X-Amz-Trailer names");
    }
    if (rule_.form != PayloadForm::signed_chunks_and_trailer) return;
    const std::string expected =
        hmac_hex(rule_.signing_key, "AWS4-HMAC-SHA256-TRAILER\n" + rule_.date + "\n" + rule_.scope +
                                        "\n" + last_signature_ + "\n" + sha256_hex(text));
    if (!equal_in_constant_time(expected, signature)) {
        fail(PayloadFault::signature_mismatch, "the trailers' signature is not the right one");
    }
}

std::optional<PayloadFault> SignedPayload::finish() {
    if (fault_) return fault_;
    if (is_in_chunks() && !ended_) {
        fail(PayloadFault::wrong_length, "the body ends before its last chunk");
    } else if (rule_.decoded_bytes && decoded_bytes_ != *rule_.decoded_bytes) {
        fail(PayloadFault::wrong_length, "the body is shorter than X-Amz-Decoded-Content-Length");
    } else if (rule_.form == PayloadForm::hashed && hash_.take_hex() != rule_.hash) {
        fail(PayloadFault::hash_mismatch, "the body is not the one that was signed");
    }
    return fault_;
}

}  // namespace gruca::net
