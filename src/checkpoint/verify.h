// checkpoint/verify.h
//
// Reading with distrust: what a store gives back is used only after its checksum was found right.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.h"
#include "store/object_store.h"

namespace gruca::checkpoint {

// Both throw data_loss for what is missing or damaged, and what the store throws otherwise.
Manifest get_manifest(const store::ObjectStore& store, std::string_view prefix, std::int64_t step);
// Fills `bytes`, which gets the piece's size.
void read_piece(const store::ObjectStore& store, std::string_view prefix, const Manifest& manifest,
                const StoredTensor& tensor, const Piece& piece, std::vector<std::byte>& bytes);

// Reads a whole checkpoint; throws data_loss unless all of it is what was written.
void verify(const store::ObjectStore& store, std::string_view prefix, std::int64_t step);

}  // namespace gruca::checkpoint
