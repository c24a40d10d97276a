// comm/rendezvous_wire.h
//
// The bytes between a rendezvous' server and its clients (docs/formats/rendezvous.md): frames of a
// type and a few texts. Pure: no sockets here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gruca::comm {

inline constexpr std::string_view kRendezvousMagic = "gruca rendezvous";
inline constexpr std::uint8_t kRendezvousVersion = 1;
inline constexpr std::size_t kFrameBytesMax = 128u << 10;
// The most a server reads from someone who has not yet shown the job's secret.
inline constexpr std::size_t kHelloBytesMax = 1u << 10;
inline constexpr std::size_t kFrameTextsMax = 8;

enum class FrameType : std::uint8_t {
    hello = 1,    // client: magic, size, rank, secret
    welcome = 2,  // server
    refused = 3,  // server: code, reason; then it hangs up
    set = 4,      // client: key, value
    wait = 5,     // client: key
    value = 6,    // server: key, value
    abort = 7,    // client: reason
    ended = 8,    // server: code, reason
    leave = 9,    // client or server: hangs up next, and all is well
};

struct Frame {
    FrameType type;
    std::vector<std::string> texts = {};

    friend bool operator==(const Frame&, const Frame&) = default;
};

std::string encode(const Frame& frame);

// Cuts a stream of bytes into frames.
class FrameDecoder final {
  public:
    explicit FrameDecoder(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

    void set_frame_bytes_max(std::size_t bytes) { frame_bytes_max_ = bytes; }
    void append(std::span<const char> bytes) { buffer_.append(bytes.data(), bytes.size()); }
    // The next whole frame, or nothing until more bytes have come. Throws data_loss for bytes that
    // cannot be a frame.
    std::optional<Frame> next();

  private:
    std::size_t frame_bytes_max_;
    std::string buffer_;
};

}  // namespace gruca::comm
