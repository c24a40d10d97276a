// train/checkpoint_keeper.h
//
// A trainer's state in a store: weights, both moments, and how far it has come. Nothing else is
// needed to go on bit for bit: schedule and data order follow from it.
// docs/formats/trainer-state.md.
#pragma once

#include "checkpoint/checkpoint.h"
#include "store/object_store.h"
#include "train/loop.h"
#include "train/trainer.h"

namespace gruca::train {

template <class Real>
class CheckpointKeeper final : public Keeper {
  public:
    struct Parts {
        Trainer<Real>& trainer;
        parallel::Mesh& mesh;
        store::ObjectStore& store;
        const spec::TrainerSpec& spec;
    };
    explicit CheckpointKeeper(const Parts& parts);

    // Throws precondition_failed, naming the first difference, when the checkpoint is of a model of
    // another shape.
    bool restore() override;

    // Older checkpoints beyond checkpoints_kept are removed afterwards; where that fails, they are
    // left, with a warning.
    std::int64_t save() override;

  private:
    Json meta() const;
    void require_same_model(const Json& saved) const;

    struct NamedNumbers {
        std::string name;
        tensor::Shape shape;
        std::span<Real> values;
    };
    std::vector<NamedNumbers> numbers_;  // Everything that is saved, by name.
    Trainer<Real>& trainer_;
    parallel::Mesh& mesh_;
    store::ObjectStore& store_;
    const spec::TrainerSpec spec_;
};

}  // namespace gruca::train
