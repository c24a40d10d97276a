// model/parameters.h
//
// All numbers of one kind (weights, gradients, a moment of the optimizer) for every parameter of a
// model, in one contiguous piece in the order of spec::parameter_table: what is added up over ranks
// is one span, what a layer uses is a span of it. Zero at first. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "spec/model_config.h"
#include "tensor/buffer.h"

namespace gruca::model {

template <class Real>
class ParameterSet {
  public:
    explicit ParameterSet(const spec::ModelConfig& config);

    const std::vector<spec::Parameter>& table() const { return table_; }
    std::span<Real> values() { return values_.span(); }
    std::span<const Real> values() const { return values_.span(); }

    std::span<Real> of(std::size_t index) { return values_.span().subspan(at(index), size(index)); }
    std::span<const Real> of(std::size_t index) const {
        return values_.span().subspan(at(index), size(index));
    }

    bool has(std::string_view name) const;
    std::size_t index_of(std::string_view name) const;  // The name must be in the table.

    void clear();  // All zero.

  private:
    std::size_t at(std::size_t index) const { return static_cast<std::size_t>(starts_[index]); }
    std::size_t size(std::size_t index) const {
        return static_cast<std::size_t>(table_[index].count());
    }

    std::vector<spec::Parameter> table_;
    std::vector<std::int64_t> starts_;
    tensor::Buffer<Real> values_;
};

// Fills `weights` by the table's means and deviations. Each number is a pure function of the seed,
// the parameter's name and its place in the parameter, computed in double.
template <class Real>
void initialize(ParameterSet<Real>& weights, std::uint64_t seed);

}  // namespace gruca::model
