// train/loop.h
//
// A whole training on one rank: go on from the newest checkpoint, step until max_steps or until
// some rank is asked to stop, evaluate and save on the way, report. All ranks take the same turns,
// because every decision follows from the step number and from what the step added up.
#pragma once

#include <atomic>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "train/reporter.h"
#include "train/trainer.h"

namespace gruca::train {

// Where a training's state is kept. A collective: all ranks call each method together.
class Keeper {
  public:
    virtual ~Keeper() = default;
    // Loads the newest complete checkpoint into the trainer, if there is one.
    virtual bool restore() = 0;
    // Returns the size of the state once it is complete.
    virtual std::int64_t save() = 0;
};

struct LoopParts {
    const spec::TrainerSpec& spec;
    parallel::Mesh& mesh;
    const SampleSource& training;
    const SampleSource* validation = nullptr;  // Null: no evaluation.
    Keeper* keeper = nullptr;                  // Null: no checkpoints.
    Reporter& reporter;
    Stopwatch& stopwatch;
    const Clock& clock;
    const std::atomic<bool>& stop_asked;
};

struct LoopOutcome {
    bool stopped = false;
    double loss = std::nan("");       // Of the last step; not a number when none was left to do.
    std::optional<double> eval_loss;  // The last one.
};

template <class Real>
LoopOutcome run_loop(Trainer<Real>& trainer, const LoopParts& parts);

}  // namespace gruca::train
