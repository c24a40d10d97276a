// train/sampling.h
//
// From scores to one token. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace gruca::train {

struct SamplingOptions {
    double temperature;  // 0: always the best one.
    std::int64_t top_k;  // Only the k best are eligible. 0: all.
};

// `chance` in [0, 1) decides. Of equal scores the smaller id comes first.
std::int32_t choose_token(std::span<const float> logits, const SamplingOptions& options,
                          double chance);

}  // namespace gruca::train
