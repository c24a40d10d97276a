#include "model/rope.h"

#include <cmath>
#include <numbers>

namespace gruca::model {
namespace {

// Turns that take longer than the original context over the low factor are slowed down by the whole
// factor, those shorter than it over the high factor not at all.
double llama3_frequency(const spec::RopeScaling& scaling, double plain) {
    const double wavelength = 2 * std::numbers::pi / plain;
    const auto original = static_cast<double>(scaling.original_context_length);
    if (wavelength > original / scaling.low_frequency_factor) return plain / scaling.factor;
    if (wavelength < original / scaling.high_frequency_factor) return plain;
    const double blend = (original / wavelength - scaling.low_frequency_factor) /
                         (scaling.high_frequency_factor - scaling.low_frequency_factor);
    return (1 - blend) * plain / scaling.factor + blend * plain;
}

double scaled(const spec::RopeScaling& scaling, double plain) {
    switch (scaling.kind) {
        case spec::RopeScaling::Kind::none:
            return plain;
        case spec::RopeScaling::Kind::linear:
            return plain / scaling.factor;
        case spec::RopeScaling::Kind::llama3:
            return llama3_frequency(scaling, plain);
    }
    return plain;
}

}  // namespace

std::vector<double> rotary_frequencies(const spec::ModelConfig& config) {
    const auto size = static_cast<double>(config.head_size());
    std::vector<double> frequencies;
    for (std::int64_t k = 0; k < config.head_size() / 2; ++k) {
        const double plain = std::pow(config.rope_theta, -2.0 * static_cast<double>(k) / size);
        frequencies.push_back(scaled(config.rope_scaling, plain));
    }
    return frequencies;
}

}  // namespace gruca::model
