// model/layers.h
//
// The two layers with parameters that blocks are made of, bound to their weights and gradients by
// name. Forward and backward are single calls of kernels::Ops.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/ops.h"
#include "model/parameters.h"

namespace gruca::model {

// Where a layer finds its numbers. `gradients` is null when only the forward pass is wanted.
template <class Real>
struct Bindings {
    const ParameterSet<Real>& weights;
    ParameterSet<Real>* gradients;

    const Real* weight(const std::string& name) const {
        return weights.of(weights.index_of(name)).data();
    }
    Real* gradient(const std::string& name) const {
        if (gradients == nullptr) return nullptr;
        return gradients->of(gradients->index_of(name)).data();
    }
};

// y = x W^T, plus a bias where the parameter table has one.
template <class Real>
class Linear {
  public:
    Linear(const Bindings<Real>& bindings, const std::string& name)
        : weight_(bindings.weight(name + ".weight")),
          dweight_(bindings.gradient(name + ".weight")) {
        const auto& parameter =
            bindings.weights.table()[bindings.weights.index_of(name + ".weight")];
        outputs_ = parameter.rows;
        inputs_ = parameter.columns;
        if (!bindings.weights.has(name + ".bias")) return;
        bias_ = bindings.weight(name + ".bias");
        dbias_ = bindings.gradient(name + ".bias");
    }

    struct Forward {
        Real* y_no;
        const Real* x_ni;
        std::int64_t n;
    };
    void forward(kernels::Ops<Real>& ops, const Forward& a) const {
        ops.linear(kernels::LinearForward<Real>{.y_no = a.y_no,
                                                .x_ni = a.x_ni,
                                                .weight_oi = weight_,
                                                .bias_o = bias_,
                                                .n = a.n,
                                                .i = inputs_,
                                                .o = outputs_});
    }

    struct Backward {
        Real* dx_ni;
        const Real* dy_no;
        const Real* x_ni;
        std::int64_t n;
        bool accumulate_dx = false;
    };
    void backward(kernels::Ops<Real>& ops, const Backward& a) const {
        ops.linear(kernels::LinearBackward<Real>{.dx_ni = a.dx_ni,
                                                 .dweight_oi = dweight_,
                                                 .dbias_o = dbias_,
                                                 .dy_no = a.dy_no,
                                                 .x_ni = a.x_ni,
                                                 .weight_oi = weight_,
                                                 .n = a.n,
                                                 .i = inputs_,
                                                 .o = outputs_,
                                                 .accumulate_dx = a.accumulate_dx});
    }

  private:
    const Real* weight_;
    const Real* bias_ = nullptr;
    Real* dweight_;
    Real* dbias_ = nullptr;
    std::int64_t inputs_;
    std::int64_t outputs_;
};

// LayerNorm where the parameter table has a bias, RMSNorm where it has none. Keeps the statistics
// of its last forward pass.
template <class Real>
class Norm {
  public:
    Norm(const Bindings<Real>& bindings, const std::string& name, double epsilon,
         std::int64_t rows_max)
        : weight_(bindings.weight(name + ".weight")),
          dweight_(bindings.gradient(name + ".weight")),
          epsilon_(epsilon),
          rstd_n_(rows_max) {
        width_ = bindings.weights.table()[bindings.weights.index_of(name + ".weight")].columns;
        if (!bindings.weights.has(name + ".bias")) return;
        bias_ = bindings.weight(name + ".bias");
        dbias_ = bindings.gradient(name + ".bias");
        mean_n_ = tensor::Buffer<Real>(rows_max);
    }

    struct Forward {
        Real* y_nc;
        const Real* x_nc;
        std::int64_t n;
    };
    void forward(kernels::Ops<Real>& ops, const Forward& a) {
        if (bias_ != nullptr) {
            ops.layer_norm(kernels::LayerNormForward<Real>{.y_nc = a.y_nc,
                                                           .mean_n = mean_n_.data(),
                                                           .rstd_n = rstd_n_.data(),
                                                           .x_nc = a.x_nc,
                                                           .weight_c = weight_,
                                                           .bias_c = bias_,
                                                           .n = a.n,
                                                           .c = width_,
                                                           .epsilon = epsilon_});
        } else {
            ops.rms_norm(kernels::RmsNormForward<Real>{.y_nc = a.y_nc,
                                                       .rstd_n = rstd_n_.data(),
                                                       .x_nc = a.x_nc,
                                                       .weight_c = weight_,
                                                       .n = a.n,
                                                       .c = width_,
                                                       .epsilon = epsilon_});
        }
    }

    struct Backward {
        Real* dx_nc;
        const Real* dy_nc;
        const Real* x_nc;
        std::int64_t n;
        bool accumulate_dx;
    };
    void backward(kernels::Ops<Real>& ops, const Backward& a) const {
        if (bias_ != nullptr) {
            ops.layer_norm(kernels::LayerNormBackward<Real>{.dx_nc = a.dx_nc,
                                                            .dweight_c = dweight_,
                                                            .dbias_c = dbias_,
                                                            .dy_nc = a.dy_nc,
                                                            .x_nc = a.x_nc,
                                                            .weight_c = weight_,
                                                            .mean_n = mean_n_.data(),
                                                            .rstd_n = rstd_n_.data(),
                                                            .n = a.n,
                                                            .c = width_,
                                                            .accumulate_dx = a.accumulate_dx});
        } else {
            ops.rms_norm(kernels::RmsNormBackward<Real>{.dx_nc = a.dx_nc,
                                                        .dweight_c = dweight_,
                                                        .dy_nc = a.dy_nc,
                                                        .x_nc = a.x_nc,
                                                        .weight_c = weight_,
                                                        .rstd_n = rstd_n_.data(),
                                                        .n = a.n,
                                                        .c = width_,
                                                        .accumulate_dx = a.accumulate_dx});
        }
    }

  private:
    const Real* weight_;
    const Real* bias_ = nullptr;
    Real* dweight_;
    Real* dbias_ = nullptr;
    double epsilon_;
    std::int64_t width_;
    tensor::Buffer<Real> mean_n_;
    tensor::Buffer<Real> rstd_n_;
};

}  // namespace gruca::model
