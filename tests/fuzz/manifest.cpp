// The manifest of a checkpoint has one form: what is read is, to the last byte, what is written.
// The input stands for what the checksum covers, so that the fuzzer need not find checksums.

#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "fuzz/target.h"

namespace checkpoint = gruca::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string body = gruca::fuzz::text_of(data, size);
    gruca::fuzz::takes([&] { checkpoint::read_manifest(body); });
    const std::string text = fmt::format(
        R"({{"format":"gruca-checkpoint","version":1,"crc32c":"{:08x}","checkpoint":{}}})"
        "\n",
        gruca::crc32c(gruca::bytes_of(body)), body);
    std::optional<checkpoint::Manifest> manifest;
    if (!gruca::fuzz::takes([&] { manifest = checkpoint::read_manifest(text); })) return 0;
    CHECK(checkpoint::write_manifest(*manifest) == text, "another form is taken: {}", text);
    for (const checkpoint::StoredTensor& one : manifest->tensors) {
        for (const checkpoint::Piece& piece : one.pieces) {
            const auto bytes =
                static_cast<std::uint64_t>(gruca::tensor::element_count(piece.box.extent)) *
                gruca::tensor::bytes_of(one.dtype);
            const std::uint64_t part = manifest->part_bytes.at(piece.part);
            CHECK(bytes <= part && piece.offset <= part - bytes, "a piece outside its part");
        }
    }
    return 0;
}
