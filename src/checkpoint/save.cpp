#include <algorithm>

#include "base/boundary.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/plan.h"
#include "checkpoint/verify.h"

namespace gruca::checkpoint {
namespace {

// One save, on one rank. Every stage ends with all ranks knowing how it went on each.
class Saving {
  public:
    Saving(store::ObjectStore& store, std::string_view prefix, const Contents& contents,
           comm::Comm& comm)
        : store_(store), prefix_(prefix), contents_(contents), comm_(comm) {}

    SaveOutcome run() {
        require_prefix(prefix_);
        agree_on_plan();
        if (is_already_there()) return SaveOutcome::already_there;
        const auto failure = run_guarded([&] { write_parts(); });
        if (failure) {
            remove_my_part();
            throw Error(*failure);
        }
        publish();
        return SaveOutcome::saved;
    }

  private:
    void agree_on_plan() {
        CHECK(contents_.step >= 0, "step {}", contents_.step);
        const auto descriptions =
            comm::all_gather_outcome(comm_, [&] { return describe(contents_.slices); });
        plan_ = make_plan(descriptions);  // The same on every rank, also if it throws.
    }

    // Leaves nothing behind that an unfinished save, or a damaged checkpoint, has at this step.
    bool is_already_there() {
        const auto answers = comm::all_gather_outcome(comm_, [&]() -> std::string {
            if (comm_.rank() != 0) return "";
            const std::string manifest = manifest_key(prefix_, contents_.step);
            if (store_.find(manifest)) {
                const auto damage = run_guarded([&] { verify(store_, prefix_, contents_.step); });
                if (!damage) return "there";
                if (damage->code() != ErrorCode::data_loss) throw Error(*damage);
                log_warning("checkpoint of step {} is damaged and is written anew: {}",
                            contents_.step, damage->message());
                store_.remove(manifest);
            }
            store_.for_each(step_prefix(prefix_, contents_.step),
                            [&](const store::ObjectInfo& info) { store_.remove(info.key); });
            return "absent";
        });
        return answers[0] == "there";
    }

    void write_parts() {
        const auto answers =
            comm::all_gather_outcome(comm_, [&] { return write_my_part().dump(); });
        for (const std::string& answer : answers) {
            auto& of_rank = checksums_.emplace_back();
            const Json checksums = Json::parse(answer);
            for (const Json& one : checksums.as_array()) {
                of_rank.push_back(static_cast<std::uint32_t>(one.as_int()));
            }
        }
    }

    // Returns the checksums of the pieces.
    Json write_my_part() {
        Json checksums = Json::array();
        const auto writer = store_.begin_put(key_of_part(comm_.rank()), {});
        for (const PlannedPiece& piece : plan_.of_rank[static_cast<std::size_t>(comm_.rank())]) {
            const auto bytes = bytes_of(piece);
            checksums.push(crc32c(bytes));
            writer->write(bytes);
        }
        writer->commit();
        return checksums;
    }

    // A piece is cut along the first dimensions, so its bytes are together.
    std::span<const std::byte> bytes_of(const PlannedPiece& piece) const {
        const std::string& name = plan_.tensors[piece.tensor].name;
        const auto slice = std::find_if(
            contents_.slices.begin(), contents_.slices.end(),
            [&](const auto& one) { return one.name == name && one.box == piece.within; });
        CHECK(slice != contents_.slices.end(), "a piece of {} was planned for another rank", name);
        const std::size_t element = tensor::bytes_of(slice->dtype);
        CHECK(slice->bytes.size() ==
                  static_cast<std::size_t>(tensor::element_count(slice->box.extent)) * element,
              "{} bytes for {} of {}", slice->bytes.size(), to_string(slice->box), name);
        std::int64_t first = 0;
        for (std::size_t d = 0; d < piece.box.start.size(); ++d) {
            first = first * slice->box.extent[d] + piece.box.start[d] - slice->box.start[d];
        }
        return slice->bytes.subspan(static_cast<std::size_t>(first) * element,
                                    plan_.bytes_of(piece));
    }

    void publish() {
        // A failed write of the manifest may have had its effect. The parts may go only when the
        // manifest is certain not to be there.
        const auto answers = comm::all_gather_outcome(comm_, [&]() -> std::string {
            if (comm_.rank() != 0) return "";
            const auto failure = run_guarded([&] { put_manifest(); });
            if (!failure) return "";
            const std::string key = manifest_key(prefix_, contents_.step);
            const bool is_ours = failure->code() != ErrorCode::already_exists;
            const bool is_gone = is_ours && !run_guarded([&] { store_.remove(key); });
            return Json::object({{"code", static_cast<int>(failure->code())},
                                 {"message", failure->message()},
                                 {"is_gone", is_gone}})
                .dump();
        });
        if (answers[0].empty()) return;
        const Json failure = Json::parse(answers[0]);
        if (failure.at("is_gone").as_bool()) remove_my_part();
        throw Error(static_cast<ErrorCode>(failure.at("code").as_int()),
                    "cannot write the manifest of step " + std::to_string(contents_.step) + ": " +
                        failure.at("message").as_string());
    }

    void put_manifest() {
        const auto outcome = store_.put(manifest_key(prefix_, contents_.step),
                                        write_manifest(make_manifest()), {.only_if_absent = true});
        if (outcome == store::PutOutcome::written) return;
        throw Error(ErrorCode::already_exists, "another run writes checkpoints to the same place");
    }

    Manifest make_manifest() const {
        Manifest manifest{
            .step = contents_.step, .meta = contents_.meta, .part_bytes = {}, .tensors = {}};
        for (const Plan::Tensor& one : plan_.tensors) {
            manifest.tensors.push_back(
                {.name = one.name, .dtype = one.dtype, .shape = one.shape, .pieces = {}});
        }
        for (std::size_t rank = 0; rank < plan_.of_rank.size(); ++rank) {
            std::uint64_t offset = 0;
            const auto& pieces = plan_.of_rank[rank];
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                manifest.tensors[pieces[i].tensor].pieces.push_back({.part = rank,
                                                                     .offset = offset,
                                                                     .crc32c = checksums_[rank][i],
                                                                     .box = pieces[i].box});
                offset += plan_.bytes_of(pieces[i]);
            }
            manifest.part_bytes.push_back(offset);
        }
        return manifest;
    }

    std::string key_of_part(int rank) const {
        return part_key(prefix_, contents_.step, static_cast<std::size_t>(rank),
                        static_cast<std::size_t>(comm_.size()));
    }

    // What cannot be removed now is removed by the next save of this step, or by prune.
    void remove_my_part() {
        const auto error = run_guarded([&] { store_.remove(key_of_part(comm_.rank())); });
        if (error) log_warning("part of an unfinished checkpoint stays: {}", error->message());
    }

    store::ObjectStore& store_;
    const std::string prefix_;
    const Contents& contents_;
    comm::Comm& comm_;
    Plan plan_;
    std::vector<std::vector<std::uint32_t>> checksums_;  // Of the pieces, by rank.
};

}  // namespace

SaveOutcome save(store::ObjectStore& store, std::string_view prefix, const Contents& contents,
                 comm::Comm& comm) {
    return Saving(store, prefix, contents, comm).run();
}

}  // namespace gruca::checkpoint
