// train/optimizer.h
//
// AdamW over a model's parameters: matrices decay, vectors do not. Its state is two moments a
// parameter and the number of updates. Owned by one thread.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "model/parameters.h"
#include "spec/trainer.h"

namespace gruca::train {

template <class Real>
class Optimizer {
  public:
    Optimizer(const spec::ModelConfig& config, const spec::TrainerSpec& spec,
              kernels::Ops<Real>& ops)
        : spec_(spec), ops_(ops), first_moment_(config), second_moment_(config) {}

    struct Update {
        double learning_rate;
        double gradient_scale;  // Multiplies every gradient: the mean over tokens, and clipping.
    };
    void apply(model::ParameterSet<Real>& weights, const model::ParameterSet<Real>& gradients,
               const Update& update);

    std::int64_t updates() const { return updates_; }
    void set_updates(std::int64_t updates) { updates_ = updates; }
    model::ParameterSet<Real>& first_moment() { return first_moment_; }
    model::ParameterSet<Real>& second_moment() { return second_moment_; }

  private:
    const spec::TrainerSpec spec_;
    kernels::Ops<Real>& ops_;
    model::ParameterSet<Real> first_moment_;
    model::ParameterSet<Real> second_moment_;
    std::int64_t updates_ = 0;
};

// The square root of the sum of all squares, added up in double in the table's order.
template <class Real>
double global_norm(kernels::Ops<Real>& ops, const model::ParameterSet<Real>& gradients);

}  // namespace gruca::train
