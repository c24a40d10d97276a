// train/trainer.h
//
// One rank's part of a data-parallel training: weights, optimizer, and a step. Every rank holds the
// whole model and trains on its slice of the global batch; gradients are summed over micro-batches
// and ranks, then divided once by the tokens of all of them. So the result does not depend on how
// the batch was cut, but for the order in which numbers are added.
//
// Everything that must survive a restart is in progress(), weights() and optimizer(); what a step
// does follows from it and from the hyperparameters. All memory is allocated by the constructor.
// Owned by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/decoder.h"
#include "parallel/gradient_reducer.h"
#include "spec/trainer.h"
#include "train/optimizer.h"
#include "train/sample_source.h"
#include "train/stopwatch.h"

namespace gruca::train {

struct StepResult {
    double loss = 0;  // Mean over the tokens of all ranks.
    double gradient_norm = 0;
    double learning_rate = 0;
    std::int64_t tokens = 0;
    bool skipped = false;  // The gradient was not finite: weights and optimizer are as before.
    bool stop = false;     // Some rank was asked to stop.
};

template <class Real>
class Trainer {
  public:
    struct Parts {
        const spec::TrainerSpec& spec;
        const spec::ModelConfig& config;
        kernels::Ops<Real>& ops;
        parallel::Mesh& mesh;
        Stopwatch& stopwatch;
    };
    // Weights are initialized from the seed. Throws invalid_argument when the batch cannot be cut.
    explicit Trainer(const Parts& parts);

    // One step on the next samples. Throws internal after bad_steps_max skipped ones in a row.
    StepResult step(const SampleSource& samples, bool stop_asked);

    // Mean loss over eval_batches global batches, or every sample if there are fewer.
    struct Evaluation {
        double loss;
        std::int64_t tokens;
    };
    Evaluation evaluate(const SampleSource& samples);

    struct Progress {
        std::int64_t step = 0;     // Steps done, skipped ones included.
        std::int64_t samples = 0;  // Read so far by all ranks: the position in the data.
        std::int64_t tokens = 0;
        std::int64_t bad_steps = 0;  // Skipped in a row.
    };
    Progress& progress() { return progress_; }
    model::ParameterSet<Real>& weights() { return weights_; }
    Optimizer<Real>& optimizer() { return optimizer_; }
    const spec::ModelConfig& config() const { return config_; }

  private:
    model::Batch read_batch(const SampleSource& samples, std::int64_t first, std::int64_t count);
    void skip(StepResult& result);

    const spec::TrainerSpec spec_;
    const spec::ModelConfig config_;
    const spec::BatchPlan plan_;
    kernels::Ops<Real>& ops_;
    parallel::Mesh& mesh_;
    Stopwatch& stopwatch_;
    model::ParameterSet<Real> weights_;
    model::ParameterSet<Real> gradients_;
    Optimizer<Real> optimizer_;
    parallel::GradientReducer<Real> reducer_;
    model::Decoder<Real> decoder_;
    std::vector<std::int32_t> sample_, tokens_, targets_;
    Progress progress_;
};

}  // namespace gruca::train
