// The frames of a rendezvous: one form each, and the same in pieces of any length.

#include "comm/rendezvous_wire.h"
#include "fuzz/target.h"

namespace comm = gruca::comm;

namespace {

// The frames and, written again, their bytes; `sound` when nothing was refused.
struct Reading {
    std::string bytes;
    bool sound = true;
    friend bool operator==(const Reading&, const Reading&) = default;
};

Reading read(std::string_view text, std::size_t piece_bytes) {
    Reading reading;
    comm::FrameDecoder decoder(comm::kFrameBytesMax);
    reading.sound = gruca::fuzz::takes([&] {
        for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
            const std::string_view piece = text.substr(at, piece_bytes);
            decoder.append({piece.data(), piece.size()});
            while (const auto frame = decoder.next()) {
                CHECK(frame->texts.size() <= comm::kFrameTextsMax, "too many texts");
                reading.bytes += comm::encode(*frame);
            }
        }
    });
    return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    const Reading whole = read(text, text.size() + 1);
    CHECK(text.starts_with(whole.bytes), "a frame of another form is taken");
    CHECK(read(text, 1) == whole && read(text, 5) == whole, "read by its pieces");
    return 0;
}
