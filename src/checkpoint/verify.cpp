#include "checkpoint/verify.h"

#include "base/crc32c.h"
#include "base/error.h"

namespace gruca::checkpoint {

Manifest get_manifest(const store::ObjectStore& store, std::string_view prefix, std::int64_t step) {
    const std::string key = manifest_key(prefix, step);
    if (!store.find(key)) throw Error(ErrorCode::data_loss, "the manifest is missing: " + key);
    Manifest manifest = read_manifest(store.get(key));
    if (manifest.step != step) {
        throw Error(ErrorCode::data_loss,
                    "the manifest is of another step: " + std::to_string(manifest.step));
    }
    return manifest;
}

void read_piece(const store::ObjectStore& store, std::string_view prefix, const Manifest& manifest,
                const StoredTensor& tensor, const Piece& piece, std::vector<std::byte>& bytes) {
    bytes.resize(static_cast<std::size_t>(tensor::element_count(piece.box.extent)) *
                 tensor::bytes_of(tensor.dtype));
    const std::string key = part_key(prefix, manifest.step, piece.part, manifest.part_bytes.size());
    std::size_t got = 0;
    try {
        got = store.read(key, piece.offset, bytes);
    } catch (const Error& error) {
        // An absent part is damage to the checkpoint, not a question about some object.
        if (error.code() != ErrorCode::not_found) throw;
        throw Error(ErrorCode::data_loss, "a part is missing: " + key);
    }
    if (got != bytes.size()) {
        throw Error(ErrorCode::data_loss, "a part is shorter than it was written: " + key);
    }
    if (crc32c(bytes) != piece.crc32c) {
        throw Error(ErrorCode::data_loss, "tensor " + tensor.name + " fails its checksum in " +
                                              key + " at byte " + std::to_string(piece.offset));
    }
}

void verify(const store::ObjectStore& store, std::string_view prefix, std::int64_t step) {
    const Manifest manifest = get_manifest(store, prefix, step);
    std::vector<std::byte> bytes;
    for (const StoredTensor& tensor : manifest.tensors) {
        for (const Piece& piece : tensor.pieces) {
            read_piece(store, prefix, manifest, tensor, piece, bytes);
        }
    }
}

}  // namespace gruca::checkpoint
