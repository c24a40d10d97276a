#include "model/parameters.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace gruca::model {
namespace {

// FNV-1a. Part of what a seed means: never changes.
std::uint64_t stream_of(std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : name) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3;
    }
    return hash;
}

}  // namespace

template <class Real>
ParameterSet<Real>::ParameterSet(const spec::ModelConfig& config)
    : table_(spec::parameter_table(config)) {
    std::int64_t count = 0;
    for (const spec::Parameter& parameter : table_) {
        starts_.push_back(count);
        count += parameter.count();
    }
    values_ = tensor::Buffer<Real>(count);
}

template <class Real>
bool ParameterSet<Real>::has(std::string_view name) const {
    return std::any_of(table_.begin(), table_.end(),
                       [&](const spec::Parameter& parameter) { return parameter.name == name; });
}

template <class Real>
std::size_t ParameterSet<Real>::index_of(std::string_view name) const {
    for (std::size_t i = 0; i < table_.size(); ++i) {
        if (table_[i].name == name) return i;
    }
    CHECK(false, "no parameter {}", name);
    return 0;
}

template <class Real>
void ParameterSet<Real>::clear() {
    std::fill(values_.span().begin(), values_.span().end(), Real{0});
}

template <class Real>
void initialize(ParameterSet<Real>& weights, std::uint64_t seed) {
    for (std::size_t p = 0; p < weights.table().size(); ++p) {
        const spec::Parameter& parameter = weights.table()[p];
        const Philox chance(seed, stream_of(parameter.name));
        const std::span<Real> values = weights.of(p);
        for (std::size_t i = 0; i < values.size(); ++i) {
            double value = parameter.init_mean;
            if (parameter.init_deviation > 0) value += parameter.init_deviation * chance.normal(i);
            values[i] = static_cast<Real>(value);
        }
    }
}

template class ParameterSet<float>;
template class ParameterSet<double>;
template void initialize(ParameterSet<float>&, std::uint64_t);
template void initialize(ParameterSet<double>&, std::uint64_t);

}  // namespace gruca::model
