// Scores exist only as a block of some queries by some keys, in a cache. The forward pass keeps a
// running maximum and sum of each query while it walks the keys; the backward pass recomputes the
// probabilities of a block from the kept log-sum-exp. Blocks beyond the diagonal are never made.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include "kernels/cpu/simd.h"
// Highway wants these in this order, after the line above.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/exp_inl.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lanes_inl.h"
#include "kernels/cpu/parallel.h"

#ifndef GRUCA_KERNELS_CPU_ATTENTION_ONCE
#define GRUCA_KERNELS_CPU_ATTENTION_ONCE
namespace gruca::kernels {

// 128 x 256 scores are 128 KB: two such blocks and the rows they come from fit an L2 cache.
constexpr std::int64_t kQueriesMax = 128;
constexpr std::int64_t kKeysMax = 256;

struct Block {
    std::int64_t query;  // The first one.
    std::int64_t queries;
    std::int64_t key;  // The first one.
    std::int64_t keys;
    bool is_first;  // For its queries.
    const std::int32_t*
        first_t;  // The first key that each query of the sequence sees; may be null.

    // Of these keys, row r sees those from begin to end.
    std::int64_t begin(std::int64_t r) const {
        return first_t == nullptr ? 0 : std::clamp<std::int64_t>(first_t[query + r] - key, 0, keys);
    }
    std::int64_t end(std::int64_t r) const {
        return std::clamp<std::int64_t>(query + r + 1 - key, 0, keys);
    }
};

}  // namespace gruca::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace gruca::kernels {
namespace HWY_NAMESPACE {
namespace {

// p = exp(scale * score - lse) up to each query's own position, 0 beyond it.
void probabilities(const AttentionBackward<float>& a, const Block& block, const float* lse,
                   float* scores) {
    const float scale = static_cast<float>(a.scale);
    for (std::int64_t r = 0; r < block.queries; ++r) {
        float* row = scores + r * block.keys;
        const std::int64_t begin = block.begin(r), end = block.end(r);
        std::fill(row, row + std::min(begin, end), 0.0f);
        std::fill(row + end, row + block.keys, 0.0f);
        if (begin >= end) continue;
        float* seen = row + begin;
        for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
            const auto score = hn::LoadU(d, seen + i);
            const auto shifted =
                hn::MulSub(score, hn::Set(d, scale), hn::Set(d, lse[block.query + r]));
            hn::StoreU(exponential(d, shifted), d, seen + i);
        });
    }
}

// dscore = p (dp - delta) scale, in place of dp.
void score_gradients(const AttentionBackward<float>& a, const Block& block, const float* delta,
                     const float* p, float* dp) {
    const float scale = static_cast<float>(a.scale);
    for (std::int64_t r = 0; r < block.queries; ++r) {
        const float* p_row = p + r * block.keys;
        float* dp_row = dp + r * block.keys;
        for_lanes(block.keys, [&](auto d, std::int64_t i) HWY_ATTR {
            const auto change = hn::Sub(hn::LoadU(d, dp_row + i), hn::Set(d, delta[r]));
            const auto scaled = hn::Mul(hn::LoadU(d, p_row + i), hn::Set(d, scale));
            hn::StoreU(hn::Mul(change, scaled), d, dp_row + i);
        });
    }
}

// delta = sum(dout * out), one a query.
void deltas(const float* dout, const float* out, std::int64_t stride, std::int64_t width,
            std::int64_t queries, float* delta) {
    for (std::int64_t r = 0; r < queries; ++r) {
        delta[r] = sum_lanes(width, [&](auto d, std::int64_t i) HWY_ATTR {
            return hn::Mul(hn::LoadU(d, dout + r * stride + i), hn::LoadU(d, out + r * stride + i));
        });
    }
}

// Turns a block of scores into exp(scale * score - maximum) and brings the running maximum, the
// running sum and what `out` holds so far to the new maximum.
void absorb_scores(const AttentionForward<float>& a, const Block& block, float* scores,
                   float* maximum, float* sum, float* out) {
    const float scale = static_cast<float>(a.scale);
    for (std::int64_t r = 0; r < block.queries; ++r) {
        float* row = scores + r * block.keys;
        const std::int64_t begin = block.begin(r), end = block.end(r);
        std::fill(row, row + std::min(begin, end), 0.0f);
        std::fill(row + end, row + block.keys, 0.0f);
        if (begin >= end) continue;
        float* seen = row + begin;
        for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
            hn::StoreU(hn::Mul(hn::LoadU(d, seen + i), hn::Set(d, scale)), d, seen + i);
        });
        const float largest = std::max(maximum[r], largest_of(seen, end - begin));
        const float block_sum = sum_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
            const auto e = exponential(d, hn::Sub(hn::LoadU(d, seen + i), hn::Set(d, largest)));
            hn::StoreU(e, d, seen + i);
            return e;
        });
        if (!block.is_first && largest > maximum[r]) {
            const float shrink = std::exp(maximum[r] - largest);
            float* so_far = out + r * a.h * a.d;
            sum[r] *= shrink;
            for_lanes(a.d, [&](auto d, std::int64_t i) HWY_ATTR {
                hn::StoreU(hn::Mul(hn::LoadU(d, so_far + i), hn::Set(d, shrink)), d, so_far + i);
            });
        }
        sum[r] += block_sum;
        maximum[r] = largest;
    }
}

void divide_by_sums(const AttentionForward<float>& a, std::int64_t queries, const float* sum,
                    float* out) {
    for (std::int64_t r = 0; r < queries; ++r) {
        float* row = out + r * a.h * a.d;
        const float factor = 1.0f / sum[r];
        for_lanes(a.d, [&](auto d, std::int64_t i) HWY_ATTR {
            hn::StoreU(hn::Mul(hn::LoadU(d, row + i), hn::Set(d, factor)), d, row + i);
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

HWY_EXPORT(probabilities);
HWY_EXPORT(score_gradients);
HWY_EXPORT(deltas);
HWY_EXPORT(absorb_scores);
HWY_EXPORT(divide_by_sums);

// Elements of one thread's scratch: two blocks of scores and two numbers a query.
constexpr std::int64_t kScratchPerThread = 2 * kQueriesMax * kKeysMax + 2 * kQueriesMax;

struct Scratch {
    float* scores;
    float* dscores;
    float* per_query;
    float* per_query_too;
};

Scratch scratch_of(std::span<float> all, std::int64_t thread) {
    float* start = all.data() + thread * kScratchPerThread;
    float* per_query = start + 2 * kQueriesMax * kKeysMax;
    return {start, start + kQueriesMax * kKeysMax, per_query, per_query + kQueriesMax};
}

// Short sequences get short blocks, or half of the work would be beyond the diagonal.
std::int64_t queries_of(std::int64_t t) {
    return t >= 512 ? kQueriesMax : kQueriesMax / 2;
}

// The queries of one head that are worked on together, and the first key each of its sequence sees.
struct Queries {
    std::int64_t begin;
    std::int64_t count;
    const std::int32_t* first_t;
};

// Calls visit(block) for the blocks of keys that these queries see. A later query sees no further
// back than an earlier one, so what the first does not see is for none of them.
template <class Visit>
void for_key_blocks(const Queries& of, const Visit& visit) {
    const std::int64_t end = of.begin + of.count;
    const std::int64_t first = of.first_t == nullptr ? 0 : of.first_t[of.begin];
    const std::int64_t begin = first / kKeysMax * kKeysMax;
    for (std::int64_t key = begin; key < end; key += kKeysMax) {
        visit(Block{.query = of.begin,
                    .queries = of.count,
                    .key = key,
                    .keys = std::min(kKeysMax, end - key),
                    .is_first = key == begin,
                    .first_t = of.first_t});
    }
}

template <class Args>
const std::int32_t* first_keys(const Args& a, std::int64_t b) {
    return a.first_key_bt == nullptr ? nullptr : a.first_key_bt + b * a.t;
}

void forward_queries(const AttentionForward<float>& a, std::int64_t b, std::int64_t h,
                     std::int64_t query, const Scratch& scratch) {
    const std::int64_t queries = std::min(queries_of(a.t), a.t - query);
    const std::int64_t group = h / (a.h / a.g);
    const float* q = a.q_nhd + (b * a.t + query) * a.q_stride + h * a.d;
    const float* k = a.k_ngd + b * a.t * a.k_stride + group * a.d;
    const float* v = a.v_ngd + b * a.t * a.v_stride + group * a.d;
    float* out = a.out_nhd + ((b * a.t + query) * a.h + h) * a.d;
    float* lse = a.lse_bht + (b * a.h + h) * a.t + query;
    float* maximum = scratch.per_query;
    float* sum = scratch.per_query_too;
    std::fill(maximum, maximum + queries, -std::numeric_limits<float>::infinity());
    std::fill(sum, sum + queries, 0.0f);
    for_key_blocks({query, queries, first_keys(a, b)}, [&](const Block& block) {
        gemm_serial({.m = queries,
                     .n = block.keys,
                     .k = a.d,
                     .a = q,
                     .lda = a.q_stride,
                     .transpose_a = false,
                     .b = k + block.key * a.k_stride,
                     .ldb = a.k_stride,
                     .transpose_b = true,
                     .c = scratch.scores,
                     .ldc = block.keys,
                     .accumulate = false});
        HWY_DYNAMIC_DISPATCH(absorb_scores)(a, block, scratch.scores, maximum, sum, out);
        gemm_serial({.m = queries,
                     .n = a.d,
                     .k = block.keys,
                     .a = scratch.scores,
                     .lda = block.keys,
                     .transpose_a = false,
                     .b = v + block.key * a.v_stride,
                     .ldb = a.v_stride,
                     .transpose_b = false,
                     .c = out,
                     .ldc = a.h * a.d,
                     .accumulate = !block.is_first});
    });
    HWY_DYNAMIC_DISPATCH(divide_by_sums)(a, queries, sum, out);
    for (std::int64_t r = 0; r < queries; ++r) lse[r] = maximum[r] + std::log(sum[r]);
}

// The addresses of one query head in one sequence, in the backward pass.
struct HeadBackward {
    float* dq;
    float* dk;
    float* dv;
    const float* dout;
    const float* out;
    const float* lse;
    const float* q;
    const float* k;
    const float* v;

    HeadBackward(const AttentionBackward<float>& a, std::int64_t b, std::int64_t h) {
        const std::int64_t row = b * a.t;
        const std::int64_t group = h / (a.h / a.g);
        dq = a.dq_nhd + row * a.q_stride + h * a.d;
        dk = a.dk_ngd + row * a.k_stride + group * a.d;
        dv = a.dv_ngd + row * a.v_stride + group * a.d;
        dout = a.dout_nhd + (row * a.h + h) * a.d;
        out = a.out_nhd + (row * a.h + h) * a.d;
        lse = a.lse_bht + (b * a.h + h) * a.t;
        q = a.q_nhd + row * a.q_stride + h * a.d;
        k = a.k_ngd + row * a.k_stride + group * a.d;
        v = a.v_ngd + row * a.v_stride + group * a.d;
    }
};

// scores and dscores of a block: P in `scores`, then its gradient by the scores in `dscores`.
void recompute_block(const AttentionBackward<float>& a, const HeadBackward& head,
                     const Block& block, const Scratch& scratch) {
    Gemm product = {.m = block.queries,
                    .n = block.keys,
                    .k = a.d,
                    .a = head.q + block.query * a.q_stride,
                    .lda = a.q_stride,
                    .transpose_a = false,
                    .b = head.k + block.key * a.k_stride,
                    .ldb = a.k_stride,
                    .transpose_b = true,
                    .c = scratch.scores,
                    .ldc = block.keys,
                    .accumulate = false};
    gemm_serial(product);
    HWY_DYNAMIC_DISPATCH(probabilities)(a, block, head.lse, scratch.scores);
    product.a = head.dout + block.query * a.h * a.d;
    product.lda = a.h * a.d;
    product.b = head.v + block.key * a.v_stride;
    product.ldb = a.v_stride;
    product.c = scratch.dscores;
    gemm_serial(product);
    HWY_DYNAMIC_DISPATCH(score_gradients)
    (a, block, scratch.per_query, scratch.scores, scratch.dscores);
}

void backward_block(const AttentionBackward<float>& a, const HeadBackward& head, const Block& block,
                    const Scratch& scratch) {
    recompute_block(a, head, block, scratch);
    gemm_serial({.m = block.queries,
                 .n = a.d,
                 .k = block.keys,
                 .a = scratch.dscores,
                 .lda = block.keys,
                 .transpose_a = false,
                 .b = head.k + block.key * a.k_stride,
                 .ldb = a.k_stride,
                 .transpose_b = false,
                 .c = head.dq + block.query * a.q_stride,
                 .ldc = a.q_stride,
                 .accumulate = !block.is_first});
    Gemm by_key = {.m = block.keys,
                   .n = a.d,
                   .k = block.queries,
                   .a = scratch.dscores,
                   .lda = block.keys,
                   .transpose_a = true,
                   .b = head.q + block.query * a.q_stride,
                   .ldb = a.q_stride,
                   .transpose_b = false,
                   .c = head.dk + block.key * a.k_stride,
                   .ldc = a.k_stride,
                   .accumulate = true};
    gemm_serial(by_key);
    by_key.a = scratch.scores;
    by_key.b = head.dout + block.query * a.h * a.d;
    by_key.ldb = a.h * a.d;
    by_key.c = head.dv + block.key * a.v_stride;
    by_key.ldc = a.v_stride;
    gemm_serial(by_key);
}

// All query heads that share one key/value head, so that no two threads add to one gradient.
void backward_group(const AttentionBackward<float>& a, std::int64_t b, std::int64_t group,
                    const Scratch& scratch) {
    const std::int64_t sharing = a.h / a.g;
    const HeadBackward first(a, b, group * sharing);
    for (std::int64_t t = 0; t < a.t; ++t) {
        std::fill_n(first.dk + t * a.k_stride, a.d, 0.0f);
        std::fill_n(first.dv + t * a.v_stride, a.d, 0.0f);
    }
    for (std::int64_t h = group * sharing; h < (group + 1) * sharing; ++h) {
        const HeadBackward head(a, b, h);
        for (std::int64_t query = 0; query < a.t; query += queries_of(a.t)) {
            const std::int64_t queries = std::min(queries_of(a.t), a.t - query);
            const std::int64_t offset = query * a.h * a.d;
            HWY_DYNAMIC_DISPATCH(deltas)
            (head.dout + offset, head.out + offset, a.h * a.d, a.d, queries, scratch.per_query);
            for_key_blocks({query, queries, first_keys(a, b)},
                           [&](const Block& block) { backward_block(a, head, block, scratch); });
        }
    }
}

}  // namespace

std::int64_t cpu::attention_scratch_count(std::int64_t /*t*/) {
    return omp_get_max_threads() * kScratchPerThread;
}

void cpu::attention(const AttentionForward<float>& a) {
    const std::int64_t blocks = (a.t + queries_of(a.t) - 1) / queries_of(a.t);
    parallel_for(a.b * a.h * blocks, [&](std::int64_t piece, std::int64_t thread) {
        const std::int64_t head = piece / blocks;
        forward_queries(a, head / a.h, head % a.h, piece % blocks * queries_of(a.t),
                        scratch_of(a.scratch, thread));
    });
}

void cpu::attention(const AttentionBackward<float>& a) {
    parallel_for(a.b * a.g, [&](std::int64_t piece, std::int64_t thread) {
        backward_group(a, piece / a.g, piece % a.g, scratch_of(a.scratch, thread));
    });
}

}  // namespace gruca::kernels
#endif
