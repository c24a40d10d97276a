// checkpoint/checkpoint.h
//
// The state of a run in a store, so that another run goes on from there. This room knows named
// tensors, a store and the ranks of a job; it knows nothing of models.
//
//   save(store, "", {.step = 100, .slices = slices, .meta = meta}, comm);
//   if (auto loaded = load_newest(store, "", targets, comm)) go_on_from(loaded->step);
//
// A checkpoint is the objects <prefix>step-00000100/part-00000-of-00002, one for each rank, and
// then, when all parts are durable, <prefix>step-00000100/manifest.json, written once and never
// changed. Without a manifest there is no checkpoint. docs/formats/checkpoint.md has the bytes.
//
// What is promised, and held by checkpoint_test.cpp with every single write failing:
//   * A manifest never names a part that is missing or different; the last complete checkpoint
//   stays
//     valid whatever happens to the next.
//   * Whatever fails on one rank, every rank learns of it: all return or all throw, none hangs.
//   * What is loaded is bit for bit what was saved, or an error. Every piece carries a checksum.
//   * Any number of ranks may load what any other number has saved.
//   * A damaged checkpoint is reported, and the newest one before it is used. When there are
//     checkpoints but none is whole, that is an error: a run never starts again from nothing
//     because its past was damaged.
//
// These are collectives: every rank calls them, in the same order, with the same arguments but for
// its own slices. Failures of the store leave the Comm intact.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/slice.h"
#include "comm/comm.h"
#include "store/object_store.h"

namespace gruca::checkpoint {

// A part of a named tensor in this rank's memory. Several ranks may have the same slice, as all do
// with data parallelism: it is then written once, and the ranks share the writing.
struct SourceSlice {
    std::string name;
    tensor::Dtype dtype;
    tensor::Shape shape;  // Of the whole tensor.
    Box box;              // The part that `bytes` holds: whole(shape), if all of it.
    std::span<const std::byte> bytes;
};

struct TargetSlice {
    std::string name;
    tensor::Dtype dtype;
    tensor::Shape shape;
    Box box;
    std::span<std::byte> into;
};

struct Contents {
    std::int64_t step;
    std::vector<SourceSlice> slices;
    Json meta;  // The caller's: layout, configuration, place in the data. Rank 0's is kept.
};

enum class SaveOutcome {
    saved,
    already_there  // A whole checkpoint of this step exists, and is left as it is.
};

// Returns when the checkpoint is durable. Throws invalid_argument when slices contradict each other
// or leave part of a tensor out, or what the store threw: on every rank.
SaveOutcome save(store::ObjectStore& store, std::string_view prefix, const Contents& contents,
                 comm::Comm& comm);

struct Loaded {
    std::int64_t step;
    Json meta;
    // Checkpoints newer than this one that could not be used, and why; for the person who looks.
    std::vector<std::string> damaged;
};

// Fills the targets from the newest whole checkpoint. Nothing when there is no checkpoint: targets
// are then untouched. Throws data_loss when there are only damaged ones, and precondition_failed
// when the checkpoint holds other tensors than those wanted (one more is no contradiction, one less
// is); the targets' content is then unspecified.
std::optional<Loaded> load_newest(const store::ObjectStore& store, std::string_view prefix,
                                  std::span<const TargetSlice> targets, comm::Comm& comm);

// Not collectives; one rank calls these.

// Steps that have a manifest, newest first.
std::vector<std::int64_t> steps(const store::ObjectStore& store, std::string_view prefix);

// Of the checkpoints up to that of step `newest`, removes all but the `keep` newest, and what
// unfinished saves before it have left. What is newer stays: it is under way, or damaged and was
// passed over when this run began. `keep` is at least 1. Manifests go first, so that no half of a
// checkpoint looks whole.
void prune(store::ObjectStore& store, std::string_view prefix, std::int64_t newest, int keep);

}  // namespace gruca::checkpoint
