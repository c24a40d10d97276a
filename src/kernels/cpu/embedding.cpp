#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

void embed_row(const EmbeddingForward<float>& a, std::int64_t row) {
    const float* token = a.token_weight_vc + a.token_n[row] * a.c;
    const float* position = a.position_weight_tc ? a.position_weight_tc + row % a.t * a.c : nullptr;
    float* y = a.y_nc + row * a.c;
    for_lanes(a.c, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto value = hn::LoadU(d, token + i);
        hn::StoreU(position ? hn::Add(value, hn::LoadU(d, position + i)) : value, d, y + i);
    });
}

// Columns [begin, end) of both tables: rows that share a token are added in their order.
void embed_backward(const EmbeddingBackward<float>& a, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < a.b * a.t; ++row) {
        const float* dy = a.dy_nc + row * a.c + begin;
        float* dtoken = a.dtoken_weight_vc + a.token_n[row] * a.c + begin;
        for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
            hn::StoreU(hn::Add(hn::LoadU(d, dtoken + i), hn::LoadU(d, dy + i)), d, dtoken + i);
        });
        if (!a.dposition_weight_tc) continue;
        float* dposition = a.dposition_weight_tc + row % a.t * a.c + begin;
        for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
            hn::StoreU(hn::Add(hn::LoadU(d, dposition + i), hn::LoadU(d, dy + i)), d,
                       dposition + i);
        });
    }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(embed_row);
HWY_EXPORT(embed_backward);

constexpr std::int64_t kRowsPerPiece = 32;
constexpr std::int64_t kColumnsPerPiece = 64;

}  // namespace

void cpu::embedding(const EmbeddingForward<float>& args) {
    parallel_ranges(args.b * args.t, kRowsPerPiece, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            HWY_DYNAMIC_DISPATCH(embed_row)(args, row);
        }
    });
}

void cpu::embedding(const EmbeddingBackward<float>& args) {
    parallel_ranges(args.c, kColumnsPerPiece, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(embed_backward)(args, begin, end);
    });
}

}  // namespace gruca::kernels
#endif
