#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gruca::train {

double learning_rate(const spec::TrainerSpec& spec, std::int64_t update) {
    if (update <= spec.warmup_steps) {
        return spec.learning_rate * static_cast<double>(update) /
               static_cast<double>(spec.warmup_steps);
    }
    const auto length = static_cast<double>(spec.max_steps - spec.warmup_steps);
    const double progress =
        std::clamp(static_cast<double>(update - spec.warmup_steps) / length, 0.0, 1.0);
    const double weight = 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return spec.min_learning_rate + weight * (spec.learning_rate - spec.min_learning_rate);
}

}  // namespace gruca::train
