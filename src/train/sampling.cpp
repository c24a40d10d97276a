#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace gruca::train {

std::int32_t choose_token(std::span<const float> logits, const SamplingOptions& options,
                          double chance) {
    CHECK(!logits.empty() && options.temperature >= 0 && chance >= 0 && chance < 1);
    if (std::any_of(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); })) {
        throw Error(ErrorCode::data_loss,
                    "the model gives scores that are not numbers: its training diverged, or its "
                    "weights are damaged");
    }
    const auto better = [&](std::int32_t a, std::int32_t b) {
        const float of_a = logits[static_cast<std::size_t>(a)];
        const float of_b = logits[static_cast<std::size_t>(b)];
        return of_a > of_b || (of_a == of_b && a < b);
    };
    std::vector<std::int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::size_t eligible = ids.size();
    if (options.top_k > 0) eligible = std::min(eligible, static_cast<std::size_t>(options.top_k));
    if (options.temperature == 0) eligible = 1;
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(eligible);
    std::partial_sort(ids.begin(), end, ids.end(), better);
    if (eligible == 1) return ids[0];

    std::vector<double> weights;
    double sum = 0;
    const double best = logits[static_cast<std::size_t>(ids[0])];
    for (std::size_t i = 0; i < eligible; ++i) {
        const double score = logits[static_cast<std::size_t>(ids[i])];
        weights.push_back(std::exp((score - best) / options.temperature));
        sum += weights.back();
    }
    double left = chance * sum;
    for (std::size_t i = 0; i < eligible; ++i) {
        left -= weights[i];
        if (left < 0) return ids[i];
    }
    return ids[eligible - 1];
}

}  // namespace gruca::train
