#include "train/reporter.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace gruca::train {

template <class Event>
void Reporter::write(const Event& event, const std::string& for_people) {
    // One piece, so that the lines of two ranks on one terminal do not mix.
    const std::string lines = fmt::format("{}\n{}\n", spec::event_line(event), for_people);
    out_.write(lines.data(), std::ssize(lines));
    out_.flush();
}

void Reporter::report(const spec::StartEvent& event) {
    write(event, fmt::format("start  rank {} of {}  {} parameters  {} steps of {} tokens  {} "
                             "kernels, {} threads",
                             event.rank, event.ranks, event.parameters, event.steps,
                             event.tokens_per_step, event.kernels, event.threads));
}

void Reporter::report(const spec::ResumeEvent& event) {
    if (!is_first_) return;
    write(event, fmt::format("resume  after step {}  {} tokens", event.step, event.tokens));
}

void Reporter::report(const spec::StepEvent& event) {
    if (!is_first_) return;
    const std::string steps = std::to_string(event.steps);
    write(event, fmt::format("step {:>{}}/{}  loss {:.4f}  lr {:.2e}  grad {:.2f}  {:.0f} tok/s{}",
                             event.step, steps.size(), steps, event.loss, event.learning_rate,
                             event.gradient_norm, event.tokens_per_second,
                             event.skipped ? "  SKIPPED: the gradient is not finite" : ""));
}

void Reporter::report(const spec::EvalEvent& event) {
    if (!is_first_) return;
    write(event, fmt::format("eval  step {}  validation loss {:.4f}  perplexity {:.1f}  {} tokens",
                             event.step, event.eval_loss, event.perplexity, event.eval_tokens));
}

void Reporter::report(const spec::CheckpointEvent& event) {
    if (!is_first_) return;
    write(event, fmt::format("checkpoint  step {}  {} in {:.1f} s", event.step,
                             human_bytes(static_cast<std::uint64_t>(event.bytes)), event.seconds));
}

void Reporter::report(const spec::EndEvent& event) {
    const std::string loss = std::isnan(event.loss) ? "" : fmt::format("loss {:.4f}  ", event.loss);
    write(event,
          fmt::format("end  step {}  {}{} tokens in {}{}", event.step, loss, event.tokens,
                      human_seconds(event.seconds), event.stopped ? "  (asked to stop)" : ""));
}

void Reporter::report(const spec::ErrorEvent& event) {
    write(event, fmt::format("error  {}: {}", event.code, event.message));
}

}  // namespace gruca::train
