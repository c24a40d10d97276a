#include "base/boundary.h"
#include "base/check.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/verify.h"

namespace gruca::checkpoint {
namespace {

using tensor::element_count;

void fill(const store::ObjectStore& store, std::string_view prefix, const Manifest& manifest,
          const TargetSlice& target, std::vector<std::byte>& scratch) {
    const StoredTensor* stored = manifest.find(target.name);
    if (stored == nullptr) {
        throw Error(ErrorCode::precondition_failed, "the checkpoint has no tensor " + target.name);
    }
    if (stored->dtype != target.dtype || stored->shape != target.shape) {
        throw Error(ErrorCode::precondition_failed,
                    "tensor " + target.name + " is " + std::string(tensor::name(stored->dtype)) +
                        " " + tensor::to_string(stored->shape) + " in the checkpoint, but " +
                        std::string(tensor::name(target.dtype)) + " " +
                        tensor::to_string(target.shape) + " in this run");
    }
    require_within(target.box, target.shape);
    std::int64_t filled = 0;
    for (const Piece& piece : stored->pieces) {
        const auto common = intersection(piece.box, target.box);
        if (!common) continue;
        read_piece(store, prefix, manifest, *stored, piece, scratch);
        copy_box({target.box, target.into}, {piece.box, scratch}, *common,
                 tensor::bytes_of(target.dtype));
        filled += element_count(common->extent);
    }
    if (filled != element_count(target.box.extent)) {
        throw Error(ErrorCode::data_loss, "the checkpoint lacks a part of tensor " + target.name);
    }
}

Json load_step(const store::ObjectStore& store, std::string_view prefix, std::int64_t step,
               std::span<const TargetSlice> targets) {
    const Manifest manifest = get_manifest(store, prefix, step);
    std::vector<std::byte> scratch;
    for (const TargetSlice& target : targets) fill(store, prefix, manifest, target, scratch);
    return manifest.meta;
}

// Rank 0's view counts, so that all ranks look at the same steps in the same order.
std::vector<std::int64_t> agreed_steps(const store::ObjectStore& store, std::string_view prefix,
                                       comm::Comm& comm) {
    const auto answers = comm::all_gather_outcome(comm, [&] {
        Json json = Json::array();
        if (comm.rank() != 0) return json.dump();
        for (const std::int64_t step : steps(store, prefix)) json.push(step);
        return json.dump();
    });
    std::vector<std::int64_t> agreed;
    const Json json = Json::parse(answers[0]);
    for (const Json& step : json.as_array()) agreed.push_back(step.as_int());
    return agreed;
}

}  // namespace

std::optional<Loaded> load_newest(const store::ObjectStore& store, std::string_view prefix,
                                  std::span<const TargetSlice> targets, comm::Comm& comm) {
    require_prefix(prefix);
    std::vector<std::string> damaged;
    for (const std::int64_t step : agreed_steps(store, prefix, comm)) {
        Json meta;
        const auto error = run_guarded([&] {
            comm::all_gather_outcome(comm, [&] {
                meta = load_step(store, prefix, step, targets);
                return std::string();
            });
        });
        if (!error) return Loaded{.step = step, .meta = meta, .damaged = damaged};
        if (error->code() != ErrorCode::data_loss) throw Error(*error);
        damaged.push_back("step " + std::to_string(step) + ": " + error->message());
    }
    if (damaged.empty()) return std::nullopt;
    std::string all;
    for (const std::string& one : damaged) all += "; " + one;
    throw Error(ErrorCode::data_loss,
                "every checkpoint is damaged; remove them to start again" + all);
}

}  // namespace gruca::checkpoint
