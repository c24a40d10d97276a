#include "train/loop.h"

#include <cmath>

namespace gruca::train {
namespace {

template <class Real>
class Loop {
  public:
    Loop(Trainer<Real>& trainer, const LoopParts& parts) : trainer_(trainer), parts_(parts) {}

    LoopOutcome run() {
        resume();
        while (step_number() < parts_.spec.max_steps && !outcome_.stopped) {
            const StepResult result = trainer_.step(parts_.training, parts_.stop_asked.load());
            outcome_.loss = result.loss;
            outcome_.stopped = result.stop && step_number() < parts_.spec.max_steps;
            tokens_ += result.tokens;
            report_step(result);
            // What is done is kept before anything else, and who was asked to stop does no more.
            if (is_due(parts_.spec.checkpoint_interval)) save();
            if (is_due(parts_.spec.eval_interval) && !outcome_.stopped) evaluate();
        }
        save();
        if (!outcome_.stopped) evaluate();
        return outcome_;
    }

  private:
    std::int64_t step_number() { return trainer_.progress().step; }
    bool is_due(std::int64_t interval) { return interval > 0 && step_number() % interval == 0; }

    void resume() {
        if (parts_.keeper == nullptr || !parts_.keeper->restore()) return;
        saved_at_ = step_number();
        parts_.reporter.report(
            spec::ResumeEvent{.step = saved_at_, .tokens = trainer_.progress().tokens});
        parts_.stopwatch.lap(Work::checkpoint);
        parts_.stopwatch.restart();
    }

    void report_step(const StepResult& result) {
        const bool due = step_number() == 1 || is_due(parts_.spec.log_interval) ||
                         step_number() == parts_.spec.max_steps || result.skipped || result.stop;
        if (!due) return;
        Stopwatch& watch = parts_.stopwatch;
        const double seconds = watch.total();
        parts_.reporter.report(spec::StepEvent{
            .step = step_number(),
            .steps = parts_.spec.max_steps,
            .loss = result.loss,
            .learning_rate = result.learning_rate,
            .gradient_norm = result.gradient_norm,
            .tokens = trainer_.progress().tokens,
            .tokens_per_second = seconds > 0 ? static_cast<double>(tokens_) / seconds : 0,
            .data_share = watch.share(Work::data),
            .compute_share = watch.share(Work::compute),
            .comm_share = watch.share(Work::comm),
            .checkpoint_share = watch.share(Work::checkpoint),
            .skipped = result.skipped});
        watch.restart();
        tokens_ = 0;
    }

    void evaluate() {
        if (parts_.validation == nullptr || evaluated_at_ == step_number()) return;
        evaluated_at_ = step_number();
        const auto evaluation = trainer_.evaluate(*parts_.validation);
        outcome_.eval_loss = evaluation.loss;
        parts_.reporter.report(spec::EvalEvent{.step = step_number(),
                                               .eval_loss = evaluation.loss,
                                               .perplexity = std::exp(evaluation.loss),
                                               .eval_tokens = evaluation.tokens});
    }

    void save() {
        if (parts_.keeper == nullptr || saved_at_ == step_number()) return;
        saved_at_ = step_number();
        const auto begin = parts_.clock.steady_now();
        const std::int64_t bytes = parts_.keeper->save();
        parts_.stopwatch.lap(Work::checkpoint);
        const std::chrono::duration<double> took = parts_.clock.steady_now() - begin;
        parts_.reporter.report(
            spec::CheckpointEvent{.step = saved_at_, .bytes = bytes, .seconds = took.count()});
    }

    Trainer<Real>& trainer_;
    const LoopParts& parts_;
    LoopOutcome outcome_;
    std::int64_t tokens_ = 0;  // Since the last reported step.
    std::int64_t saved_at_ = -1;
    std::int64_t evaluated_at_ = -1;
};

}  // namespace

template <class Real>
LoopOutcome run_loop(Trainer<Real>& trainer, const LoopParts& parts) {
    return Loop<Real>(trainer, parts).run();
}

template LoopOutcome run_loop(Trainer<float>&, const LoopParts&);
template LoopOutcome run_loop(Trainer<double>&, const LoopParts&);

}  // namespace gruca::train
