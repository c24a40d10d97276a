#include "comm/rendezvous_wire.h"

#include <string_view>

#include "base/check.h"
#include "base/error.h"

namespace gruca::comm {
namespace {

// A frame: bytes that follow, u32; version, u8; type, u8; texts, u8; each text: bytes, u32; bytes.
// Numbers are little-endian.
constexpr std::size_t kHeadBytes = 3;

void append_u32(std::string& out, std::size_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
        out.push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
    }
}

std::size_t read_u32(std::string_view bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        value |= std::size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    return value;
}

[[noreturn]] void throw_malformed(std::string_view what, std::size_t value) {
    throw Error(ErrorCode::data_loss, "not a frame of the rendezvous: " + std::string(what) + " " +
                                          std::to_string(value));
}

Frame decode(std::string_view body) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(body[i]); };
    if (byte(0) != kRendezvousVersion) throw_malformed("version", byte(0));
    const auto type = static_cast<FrameType>(byte(1));
    if (type < FrameType::hello || type > FrameType::leave) throw_malformed("type", byte(1));
    const std::size_t texts = byte(2);
    if (texts > kFrameTextsMax) throw_malformed("texts", texts);
    Frame frame{.type = type};
    body.remove_prefix(kHeadBytes);
    for (std::size_t i = 0; i < texts; ++i) {
        if (body.size() < 4) throw_malformed("bytes left", body.size());
        const std::size_t bytes = read_u32(body);
        body.remove_prefix(4);
        if (body.size() < bytes) throw_malformed("text bytes", bytes);
        frame.texts.emplace_back(body.substr(0, bytes));
        body.remove_prefix(bytes);
    }
    if (!body.empty()) throw_malformed("bytes too many", body.size());
    return frame;
}

}  // namespace

std::string encode(const Frame& frame) {
    CHECK(frame.texts.size() <= kFrameTextsMax, "frame of {} texts", frame.texts.size());
    std::string body;
    body.push_back(static_cast<char>(kRendezvousVersion));
    body.push_back(static_cast<char>(frame.type));
    body.push_back(static_cast<char>(frame.texts.size()));
    for (const std::string& text : frame.texts) {
        append_u32(body, text.size());
        body += text;
    }
    std::string out;
    append_u32(out, body.size());
    return out + body;
}

std::optional<Frame> FrameDecoder::next() {
    if (buffer_.size() < 4) return std::nullopt;
    const std::size_t bytes = read_u32(buffer_);
    if (bytes < kHeadBytes || bytes > frame_bytes_max_) throw_malformed("bytes", bytes);
    if (buffer_.size() < 4 + bytes) return std::nullopt;
    Frame frame = decode(std::string_view(buffer_).substr(4, bytes));
    buffer_.erase(0, 4 + bytes);
    return frame;
}

}  // namespace gruca::comm
