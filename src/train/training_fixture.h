// train/training_fixture.h
//
// For tests of this room: a tiny model, samples made of arithmetic, and trainings on them as one
// rank or several.
#pragma once

#include <atomic>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "comm/thread_comm.h"
#include "train/loop.h"

namespace gruca::train::testing {

inline constexpr std::int64_t kVocabulary = 13;

inline spec::TrainerSpec a_tiny_spec(std::string architecture = "gpt2") {
    spec::TrainerSpec spec;
    spec.architecture = std::move(architecture);
    spec.layers = 2;
    spec.width = 16;
    spec.heads = 2;
    spec.context_length = 6;
    spec.hidden = 24;
    spec.max_steps = 6;
    spec.global_batch_size = 8;
    spec.micro_batch_size = 2;
    spec.warmup_steps = 2;
    spec.learning_rate = 1e-2;
    spec.min_learning_rate = 1e-3;
    spec.log_interval = 1;
    spec.eval_interval = 3;
    spec.eval_batches = 2;
    return spec;
}

// Sequences that count upwards from a random start by a random stride: there is something to learn.
class CountingSamples final : public SampleSource {
  public:
    explicit CountingSamples(std::int64_t count = 1000) : count_(count) {}
    std::int64_t count() const override { return count_; }
    void read(std::int64_t index, std::span<std::int32_t> tokens) const override {
        const Philox chance(99, 0);
        const auto at = static_cast<std::uint64_t>(index % count_);
        std::uint64_t value = chance.below(kVocabulary, 2 * at);
        const std::uint64_t stride = 1 + chance.below(3, 2 * at + 1);
        for (std::int32_t& token : tokens) {
            token = static_cast<std::int32_t>(value);
            value = (value + stride) % static_cast<std::uint64_t>(kVocabulary);
        }
    }

  private:
    std::int64_t count_;
};

// One rank of a training, with everything it needs.
template <class Real>
struct Rank {
    Rank(comm::Comm& comm, const spec::TrainerSpec& trainer_spec)
        : spec(trainer_spec),
          mesh(comm),
          ops(kernels::make_reference_ops<Real>()),
          trainer({.spec = spec,
                   .config = spec::model_config(spec, kVocabulary),
                   .ops = *ops,
                   .mesh = mesh,
                   .stopwatch = stopwatch}),
          reporter(output, mesh.is_first()) {}

    LoopOutcome run(const SampleSource& samples, Keeper* keeper = nullptr,
                    const SampleSource* validation = nullptr) {
        return run_loop(trainer, {.spec = spec,
                                  .mesh = mesh,
                                  .training = samples,
                                  .validation = validation,
                                  .keeper = keeper,
                                  .reporter = reporter,
                                  .stopwatch = stopwatch,
                                  .clock = clock,
                                  .stop_asked = stop_asked});
    }
    std::vector<Real> weights() {
        const auto values = trainer.weights().values();
        return {values.begin(), values.end()};
    }

    const spec::TrainerSpec spec;
    ManualClock clock{TimePoint{}};
    Stopwatch stopwatch{clock};
    parallel::Mesh mesh;
    std::unique_ptr<kernels::Ops<Real>> ops;
    Trainer<Real> trainer;
    std::ostringstream output;
    Reporter reporter;
    std::atomic<bool> stop_asked = false;
};

// The events of a kind in what a rank has printed.
template <class Event>
std::vector<Event> events_in(const std::string& output) {
    std::vector<Event> events;
    for (const std::string& line : split(output, '\n')) {
        const auto json = spec::event_of_line(line);
        if (!json) continue;
        if (const auto event = spec::event_as<Event>(*json)) events.push_back(*event);
    }
    return events;
}

}  // namespace gruca::train::testing
