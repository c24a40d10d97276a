#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/column_sums.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

struct Strip {
    alignas(64) float weight[kStripColumns];
    alignas(64) float bias[kStripColumns];
};

void sum_block(const ColumnSums& a, std::int64_t row_begin, std::int64_t row_end,
               std::int64_t begin, std::int64_t width, Strip& sums) {
    for (std::int64_t row = row_begin; row < row_end; ++row) {
        const float* dy = a.dy_nc + row * a.c + begin;
        if (a.dbias_c) {
            for_lanes(width, [&](auto d, std::int64_t i) HWY_ATTR {
                hn::StoreU(hn::Add(hn::LoadU(d, sums.bias + i), hn::LoadU(d, dy + i)), d,
                           sums.bias + i);
            });
        }
        if (!a.dweight_c) continue;
        const float* x = a.x_nc + row * a.c + begin;
        const float rstd = a.rstd_n[row];
        const float mean = a.mean_n ? a.mean_n[row] : 0.0f;
        for_lanes(width, [&](auto d, std::int64_t i) HWY_ATTR {
            const auto normal =
                hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, rstd));
            hn::StoreU(hn::MulAdd(hn::LoadU(d, dy + i), normal, hn::LoadU(d, sums.weight + i)), d,
                       sums.weight + i);
        });
    }
}

void sum_strip(const ColumnSums& a, std::int64_t begin, std::int64_t end) {
    Strip total = {};
    for (std::int64_t row = 0; row < a.n; row += kStripRows) {
        Strip block = {};
        sum_block(a, row, std::min(a.n, row + kStripRows), begin, end - begin, block);
        for (std::int64_t i = 0; i < end - begin; ++i) {
            total.weight[i] += block.weight[i];
            total.bias[i] += block.bias[i];
        }
    }
    for (std::int64_t i = 0; i < end - begin; ++i) {
        if (a.dweight_c) a.dweight_c[begin + i] += total.weight[i];
        if (a.dbias_c) a.dbias_c[begin + i] += total.bias[i];
    }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(sum_strip);

}  // namespace

void add_column_sums(const ColumnSums& args) {
    parallel_ranges(args.c, kStripColumns, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(sum_strip)(args, begin, end);
    });
}

}  // namespace gruca::kernels
#endif
