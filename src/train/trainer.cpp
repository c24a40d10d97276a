#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/schedule.h"

namespace gruca::train {

template <class Real>
Trainer<Real>::Trainer(const Parts& parts)
    : spec_(parts.spec),
      config_(parts.config),
      plan_(spec::require_valid(parts.spec, parts.mesh.data_size())),
      ops_(parts.ops),
      mesh_(parts.mesh),
      stopwatch_(parts.stopwatch),
      weights_(config_),
      gradients_(config_),
      optimizer_(config_, spec_, ops_),
      reducer_(mesh_, {gradients_.values()}),
      decoder_(config_, ops_, {.weights = weights_, .gradients = &gradients_},
               {.b = plan_.micro_batch_size, .t = config_.context_length}) {
    const auto t = static_cast<std::size_t>(config_.context_length);
    const auto b = static_cast<std::size_t>(plan_.micro_batch_size);
    sample_.resize(t + 1);
    tokens_.resize(b * t);
    targets_.resize(b * t);
    model::initialize(weights_, static_cast<std::uint64_t>(spec_.seed));
}

template <class Real>
model::Batch Trainer<Real>::read_batch(const SampleSource& samples, std::int64_t first,
                                       std::int64_t count) {
    const std::size_t t = sample_.size() - 1;
    for (std::int64_t row = 0; row < count; ++row) {
        samples.read(first + row, sample_);
        const auto at = static_cast<std::ptrdiff_t>(t) * row;
        std::copy_n(sample_.begin(), t, tokens_.begin() + at);
        std::copy_n(sample_.begin() + 1, t, targets_.begin() + at);
    }
    const std::size_t n = static_cast<std::size_t>(count) * t;
    return {.tokens = std::span(tokens_).first(n),
            .targets = std::span(targets_).first(n),
            .shape = {.b = count, .t = config_.context_length}};
}

template <class Real>
StepResult Trainer<Real>::step(const SampleSource& samples, bool stop_asked) {
    gradients_.clear();
    model::Loss mine;
    const std::int64_t share = plan_.micro_batch_size * plan_.micro_batches;
    const std::int64_t first = progress_.samples + mesh_.data_rank() * share;
    for (std::int64_t micro = 0; micro < plan_.micro_batches; ++micro) {
        const model::Batch batch =
            read_batch(samples, first + micro * plan_.micro_batch_size, plan_.micro_batch_size);
        stopwatch_.lap(Work::data);
        const model::Loss loss = decoder_.train(batch, 1);
        stopwatch_.lap(Work::compute);
        mine.sum += loss.sum;
        mine.tokens += loss.tokens;
    }
    const parallel::StepTotals all =
        reducer_.reduce({.loss_sum = mine.sum, .tokens = mine.tokens, .stop = stop_asked});
    stopwatch_.lap(Work::comm);

    const auto tokens = static_cast<double>(all.tokens);
    StepResult result{.loss = all.loss_sum / tokens,
                      .gradient_norm = global_norm(ops_, gradients_) / tokens,
                      .learning_rate = learning_rate(spec_, optimizer_.updates() + 1),
                      .tokens = all.tokens,
                      .stop = all.stop};
    ++progress_.step;
    progress_.samples += spec_.global_batch_size;
    progress_.tokens += all.tokens;
    if (!std::isfinite(result.gradient_norm) || !std::isfinite(result.loss)) {
        skip(result);
        return result;
    }
    progress_.bad_steps = 0;
    const bool clips = spec_.gradient_clip > 0 && result.gradient_norm > spec_.gradient_clip;
    const double clip = clips ? spec_.gradient_clip / result.gradient_norm : 1;
    optimizer_.apply(weights_, gradients_,
                     {.learning_rate = result.learning_rate, .gradient_scale = clip / tokens});
    stopwatch_.lap(Work::compute);
    return result;
}

template <class Real>
void Trainer<Real>::skip(StepResult& result) {
    result.skipped = true;
    if (++progress_.bad_steps < spec_.bad_steps_max) return;
    throw Error(ErrorCode::internal,
                fmt::format("the gradient was not finite {} steps in a row: try a lower "
                            "learning_rate or a longer warmup_steps; step {}, loss {}",
                            progress_.bad_steps, progress_.step, result.loss));
}

template <class Real>
typename Trainer<Real>::Evaluation Trainer<Real>::evaluate(const SampleSource& samples) {
    const std::int64_t wanted =
        std::min(spec_.eval_batches * spec_.global_batch_size, samples.count());
    const std::int64_t ranks = mesh_.data_size(), rank = mesh_.data_rank();
    const std::int64_t first = wanted * rank / ranks, end = wanted * (rank + 1) / ranks;
    model::Loss mine;
    for (std::int64_t at = first; at < end; at += plan_.micro_batch_size) {
        const model::Batch batch =
            read_batch(samples, at, std::min(plan_.micro_batch_size, end - at));
        const model::Loss loss = decoder_.evaluate(batch);
        mine.sum += loss.sum;
        mine.tokens += loss.tokens;
    }
    stopwatch_.lap(Work::compute);
    const parallel::StepTotals all =
        parallel::sum_over_ranks(mesh_, {.loss_sum = mine.sum, .tokens = mine.tokens});
    stopwatch_.lap(Work::comm);
    return {.loss = all.loss_sum / static_cast<double>(all.tokens), .tokens = all.tokens};
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace gruca::train
