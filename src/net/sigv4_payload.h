// net/sigv4_payload.h
//
// A body, held against what its request's signature says of it, while it streams. Takes aws-chunked
// framing off. Bytes come out before all of them are checked: nothing may come of them, no object
// may become visible, until finish() has returned nothing.
//
//   SignedPayload payload(verified.payload);
//   while (const std::size_t n = stream.read(buffer)) {
//       writer.write(payload.take(std::span(buffer).first(n)));
//       if (payload.fault()) break;
//   }
//   if (const auto fault = payload.finish()) { writer.abort(); ... } else { writer.commit(); }
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/chunked.h"
#include "net/sigv4_s3.h"

namespace gruca::net {

enum class PayloadFault {
    hash_mismatch,  // The body's SHA-256 is not the signed one: XAmzContentSHA256Mismatch, 400.
    signature_mismatch,  // Of a chunk or of the trailers: SignatureDoesNotMatch, 403.
    malformed,     // Not aws-chunked, or its trailers are not the ones told: InvalidRequest, 400.
    wrong_length,  // Not X-Amz-Decoded-Content-Length, or cut off: IncompleteBody, 400.
};

// SHA-256 of bytes as they come.
class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;
    void update(std::span<const std::byte> bytes);
    std::string take_hex();  // And begins anew.

  private:
    struct Context;
    const std::unique_ptr<Context> context_;
};

class SignedPayload {
  public:
    explicit SignedPayload(PayloadRule rule);

    // Takes what came, in pieces of any length, and decodes it in place: the bytes of the object
    // lie at the front of `bytes`. Empty after a fault.
    std::span<const std::byte> take(std::span<std::byte> bytes);

    // The body is over. Nothing when it is the one that was signed.
    std::optional<PayloadFault> finish();

    std::optional<PayloadFault> fault() const { return fault_; }
    const std::string& detail() const { return detail_; }
    std::uint64_t decoded_bytes() const { return decoded_bytes_; }  // So far.
    const Headers& trailers() const { return reader_.trailers(); }  // Whole after finish().

  private:
    bool is_in_chunks() const { return rule_.form >= PayloadForm::chunks; }
    bool signs_chunks() const { return rule_.form >= PayloadForm::signed_chunks; }
    std::size_t decode(std::span<std::byte> bytes);
    void begin_chunk();
    void end_chunk();
    void end_trailers();
    void fail(PayloadFault fault, std::string detail);

    const PayloadRule rule_;
    ChunkedReader reader_;
    Sha256 hash_;
    std::string last_signature_;
    std::string chunk_signature_;  // That of the chunk being read.
    bool chunk_open_ = false;
    bool ended_ = false;
    std::uint64_t decoded_bytes_ = 0;
    std::optional<PayloadFault> fault_;
    std::string detail_;
};

}  // namespace gruca::net
