// cli/progress.h
//
// Reads the events of the built-in trainer (spec/event.h) out of a log and says in one line how far
// the training is:
//
//   step 120/400  loss 5.1234  validation 5.4000  12,345 tokens/s  2 min 05 s left
//
// Owned by one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "spec/event.h"

namespace gruca::cli {

class TrainingProgress {
  public:
    // Whether the line is an event, and so not for people.
    bool take(std::string_view line);

    // Nothing before the first step is reported.
    std::optional<std::string> line() const;

    // Whether a step has been reported since `line` was last asked for.
    bool has_news() const { return has_news_; }
    void clear_news() { has_news_ = false; }

  private:
    std::optional<spec::StepEvent> step_;
    std::optional<double> eval_loss_;
    bool has_news_ = false;
};

// "12,345"
std::string with_commas(long long number);

}  // namespace gruca::cli
