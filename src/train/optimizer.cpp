#include "train/optimizer.h"

#include <cmath>

namespace gruca::train {

template <class Real>
void Optimizer<Real>::apply(model::ParameterSet<Real>& weights,
                            const model::ParameterSet<Real>& gradients, const Update& update) {
    ++updates_;
    for (std::size_t p = 0; p < weights.table().size(); ++p) {
        const spec::Parameter& parameter = weights.table()[p];
        ops_.adamw({.weight = weights.of(p).data(),
                    .first_moment = first_moment_.of(p).data(),
                    .second_moment = second_moment_.of(p).data(),
                    .gradient = gradients.of(p).data(),
                    .count = parameter.count(),
                    .step = updates_,
                    .learning_rate = update.learning_rate,
                    .beta1 = spec_.beta1,
                    .beta2 = spec_.beta2,
                    .epsilon = spec_.epsilon,
                    .weight_decay = parameter.is_matrix ? spec_.weight_decay : 0,
                    .gradient_scale = update.gradient_scale});
    }
    ops_.finish();
}

template <class Real>
double global_norm(kernels::Ops<Real>& ops, const model::ParameterSet<Real>& gradients) {
    double sum = 0;
    for (std::size_t p = 0; p < gradients.table().size(); ++p) {
        ops.sum_of_squares(
            {.sum = &sum, .x = gradients.of(p).data(), .count = gradients.table()[p].count()});
    }
    ops.finish();
    return std::sqrt(sum);
}

template class Optimizer<float>;
template class Optimizer<double>;
template double global_norm(kernels::Ops<float>&, const model::ParameterSet<float>&);
template double global_norm(kernels::Ops<double>&, const model::ParameterSet<double>&);

}  // namespace gruca::train
