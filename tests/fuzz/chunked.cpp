// A chunked body says the same whether it comes whole or byte by byte.

#include "net/chunked.h"

#include "fuzz/target.h"

namespace net = gruca::net;
using What = net::ChunkedReader::What;

namespace {

struct Reading {
    std::string data;
    std::vector<std::pair<std::string, std::string>> trailers;
    std::vector<std::string> chunks;
    std::size_t used = 0;
    What last = What::more;
    friend bool operator==(const Reading&, const Reading&) = default;
};

Reading read(std::string_view text, std::size_t piece_bytes) {
    Reading reading;
    net::ChunkedReader reader;
    while (reading.used < text.size()) {
        const std::string_view piece = text.substr(reading.used, piece_bytes);
        std::string_view left = piece;
        do {
            reading.last = reader.next(left);
            if (reading.last == What::data) reading.data += reader.data();
            if (reading.last == What::chunk) {
                reading.chunks.push_back(std::to_string(reader.size()) + ';' +
                                         std::string(reader.extension()));
            }
            CHECK(reading.data.size() <= text.size(), "more came out than went in");
        } while (reading.last == What::chunk || reading.last == What::data);
        if (reading.last == What::malformed) {
            CHECK(!reader.fault().empty(), "malformed without a word");
            reading.used = 0;  // Where it is noticed depends on the pieces.
            break;
        }
        reading.used += piece.size() - left.size();
        if (reading.last == What::end) break;
    }
    if (reading.last == What::end) reading.trailers = reader.trailers().fields();
    return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    const Reading whole = read(text, text.size() + 1);
    for (const std::size_t piece_bytes : {1, 7}) {
        const Reading pieces = read(text, piece_bytes);
        CHECK(pieces.last == whole.last && pieces.data.size() <= text.size(), "ends differ");
        if (whole.last != What::malformed) CHECK(pieces == whole, "in pieces of {}", piece_bytes);
    }
    return 0;
}
