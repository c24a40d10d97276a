#include "cli/progress.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace gruca::cli {
namespace {

double seconds_left(const spec::StepEvent& step) {
    const double tokens_per_step =
        static_cast<double>(step.tokens) / static_cast<double>(step.step);
    return static_cast<double>(step.steps - step.step) * tokens_per_step / step.tokens_per_second;
}

}  // namespace

bool TrainingProgress::take(std::string_view line) {
    const auto event = spec::event_of_line(line);
    if (!event) return false;
    if (const auto step = spec::event_as<spec::StepEvent>(*event)) {
        step_ = *step;
        has_news_ = true;
    }
    if (const auto eval = spec::event_as<spec::EvalEvent>(*event)) {
        eval_loss_ = eval->eval_loss;
        has_news_ = step_.has_value();
    }
    return true;
}

std::optional<std::string> TrainingProgress::line() const {
    if (!step_) return std::nullopt;
    std::string text =
        fmt::format("step {}/{}  loss {:.4f}", step_->step, step_->steps, step_->loss);
    if (eval_loss_) text += fmt::format("  validation {:.4f}", *eval_loss_);
    if (step_->tokens_per_second > 0 && step_->step > 0) {
        text += "  " + with_commas(std::llround(step_->tokens_per_second)) + " tokens/s";
        if (step_->steps > step_->step) {
            text += "  " + human_seconds(seconds_left(*step_)) + " left";
        }
    }
    return text;
}

std::string with_commas(long long number) {
    std::string text = std::to_string(number);
    const std::size_t first_digit = number < 0 ? 1 : 0;
    for (std::size_t at = text.size(); at > first_digit + 3;) {
        at -= 3;
        text.insert(at, ",");
    }
    return text;
}

}  // namespace gruca::cli
