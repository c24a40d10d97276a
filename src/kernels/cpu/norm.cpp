#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

#ifndef GRUCA_KERNELS_CPU_NORM_ONCE
#define GRUCA_KERNELS_CPU_NORM_ONCE
namespace gruca::kernels {

// What both backward passes share: dx = rstd (dy weight - sum / c - normal dot / c), where normal =
// (x - mean) rstd, dot = sum(dy weight normal), and sum = sum(dy weight) for the layer norm only.
struct InputGradient {
    float* dx;
    const float* dy;
    const float* x;
    const float* weight;
    float mean;
    float rstd;
    std::int64_t c;
    bool centred;
    bool accumulate;
};

}  // namespace gruca::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

void layer_norm_row(const LayerNormForward<float>& a, std::int64_t row) {
    const float* x = a.x_nc + row * a.c;
    float* y = a.y_nc + row * a.c;
    const float width = static_cast<float>(a.c);
    const float mean =
        sum_lanes(a.c, [&](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); }) /
        width;
    const float squares = sum_lanes(a.c, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
        return hn::Mul(centred, centred);
    });
    const float rstd = 1.0f / std::sqrt(squares / width + static_cast<float>(a.epsilon));
    for_lanes(a.c, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto normal =
            hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
        hn::StoreU(hn::MulAdd(normal, hn::LoadU(d, a.weight_c + i), hn::LoadU(d, a.bias_c + i)), d,
                   y + i);
    });
    a.mean_n[row] = mean;
    a.rstd_n[row] = rstd;
}

void rms_norm_row(const RmsNormForward<float>& a, std::int64_t row) {
    const float* x = a.x_nc + row * a.c;
    float* y = a.y_nc + row * a.c;
    const float squares = sum_lanes(a.c, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto value = hn::LoadU(d, x + i);
        return hn::Mul(value, value);
    });
    const float rstd =
        1.0f / std::sqrt(squares / static_cast<float>(a.c) + static_cast<float>(a.epsilon));
    for_lanes(a.c, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto normal = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, rstd));
        hn::StoreU(hn::Mul(normal, hn::LoadU(d, a.weight_c + i)), d, y + i);
    });
    a.rstd_n[row] = rstd;
}

void input_gradient_row(const InputGradient& a) {
    const auto normal = [&](auto d, std::int64_t i) HWY_ATTR {
        return hn::Mul(hn::Sub(hn::LoadU(d, a.x + i), hn::Set(d, a.mean)), hn::Set(d, a.rstd));
    };
    const auto pull = [&](auto d, std::int64_t i) HWY_ATTR {
        return hn::Mul(hn::LoadU(d, a.dy + i), hn::LoadU(d, a.weight + i));
    };
    const float width = static_cast<float>(a.c);
    const float dot = sum_lanes(a.c, [&](auto d, std::int64_t i)
                                         HWY_ATTR { return hn::Mul(pull(d, i), normal(d, i)); }) /
                      width;
    const float sum = a.centred ? sum_lanes(a.c, pull) / width : 0.0f;
    for_lanes(a.c, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto inner = hn::Sub(pull(d, i), hn::Set(d, sum));
        const auto change =
            hn::Mul(hn::NegMulAdd(normal(d, i), hn::Set(d, dot), inner), hn::Set(d, a.rstd));
        hn::StoreU(a.accumulate ? hn::Add(hn::LoadU(d, a.dx + i), change) : change, d, a.dx + i);
    });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(layer_norm_row);
HWY_EXPORT(rms_norm_row);
HWY_EXPORT(input_gradient_row);

constexpr std::int64_t kElementsPerPiece = 16384;

template <class Row>
void parallel_rows(std::int64_t n, std::int64_t c, const Row& row) {
    parallel_ranges(n, std::max<std::int64_t>(1, kElementsPerPiece / c),
                    [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) row(i);
                    });
}

}  // namespace

void cpu::layer_norm(const LayerNormForward<float>& args) {
    parallel_rows(args.n, args.c, [&](std::int64_t row) {
        HWY_DYNAMIC_DISPATCH(layer_norm_row)(args, row);
    });
}

// The column sums come first: dx may take the place of dy.
void cpu::layer_norm(const LayerNormBackward<float>& a) {
    add_column_sums({.dweight_c = a.dweight_c,
                     .dbias_c = a.dbias_c,
                     .dy_nc = a.dy_nc,
                     .x_nc = a.x_nc,
                     .mean_n = a.mean_n,
                     .rstd_n = a.rstd_n,
                     .n = a.n,
                     .c = a.c});
    parallel_rows(a.n, a.c, [&](std::int64_t row) {
        HWY_DYNAMIC_DISPATCH(input_gradient_row)
        ({.dx = a.dx_nc + row * a.c,
          .dy = a.dy_nc + row * a.c,
          .x = a.x_nc + row * a.c,
          .weight = a.weight_c,
          .mean = a.mean_n[row],
          .rstd = a.rstd_n[row],
          .c = a.c,
          .centred = true,
          .accumulate = a.accumulate_dx});
    });
}

void cpu::rms_norm(const RmsNormForward<float>& args) {
    parallel_rows(args.n, args.c, [&](std::int64_t row) {
        HWY_DYNAMIC_DISPATCH(rms_norm_row)(args, row);
    });
}

void cpu::rms_norm(const RmsNormBackward<float>& a) {
    add_column_sums({.dweight_c = a.dweight_c,
                     .dy_nc = a.dy_nc,
                     .x_nc = a.x_nc,
                     .rstd_n = a.rstd_n,
                     .n = a.n,
                     .c = a.c});
    parallel_rows(a.n, a.c, [&](std::int64_t row) {
        HWY_DYNAMIC_DISPATCH(input_gradient_row)
        ({.dx = a.dx_nc + row * a.c,
          .dy = a.dy_nc + row * a.c,
          .x = a.x_nc + row * a.c,
          .weight = a.weight_c,
          .mean = 0.0f,
          .rstd = a.rstd_n[row],
          .c = a.c,
          .centred = false,
          .accumulate = a.accumulate_dx});
    });
}

}  // namespace gruca::kernels
#endif
