// kernels/argument_checks.h
//
// What every implementation demands of its arguments before it works, said once.
#pragma once

#include "base/check.h"
#include "kernels/ops.h"

namespace gruca::kernels {

template <class Args>
void check_rows(const Args& a) {
    CHECK(a.n >= 0 && a.c > 0, "n {}, c {}", a.n, a.c);
}

template <class Args>
void check_embedding(const Args& a) {
    CHECK(a.b >= 0 && a.t >= 0 && a.c > 0 && a.v > 0, "b {}, t {}, c {}, v {}", a.b, a.t, a.c, a.v);
    for (std::int64_t row = 0; row < a.b * a.t; ++row) {
        CHECK(a.token_n[row] >= 0 && a.token_n[row] < a.v, "row {}, token {}, v {}", row,
              a.token_n[row], a.v);
    }
}

template <class Args>
void check_linear(const Args& a) {
    CHECK(a.n >= 0 && a.i > 0 && a.o > 0, "n {}, i {}, o {}", a.n, a.i, a.o);
}

template <class Real>
void check_rope(const Rope<Real>& a) {
    CHECK(a.b >= 0 && a.t >= 0 && a.h > 0 && a.d > 0 && a.d % 2 == 0 && a.stride >= a.h * a.d,
          "b {}, t {}, h {}, d {}, stride {}", a.b, a.t, a.h, a.d, a.stride);
}

template <class Args>
void check_attention(const Args& a, std::int64_t scratch_count) {
    CHECK(a.b >= 0 && a.t >= 0 && a.h > 0 && a.d > 0, "b {}, t {}, h {}, d {}", a.b, a.t, a.h, a.d);
    CHECK(a.g > 0 && a.h % a.g == 0, "h {} is no multiple of g {}", a.h, a.g);
    CHECK(a.q_stride >= a.h * a.d && a.k_stride >= a.g * a.d && a.v_stride >= a.g * a.d,
          "strides {} {} {}", a.q_stride, a.k_stride, a.v_stride);
    for (std::int64_t n = 0; a.first_key_bt != nullptr && n < a.b * a.t; ++n) {
        const std::int64_t first = a.first_key_bt[n], t = n % a.t;
        CHECK(first >= 0 && first <= t && (t == 0 || first >= a.first_key_bt[n - 1]),
              "first key {} of query {}", first, n);
    }
    CHECK(static_cast<std::int64_t>(a.scratch.size()) >= scratch_count,
          "scratch of {} elements, {} needed", a.scratch.size(), scratch_count);
}

template <class Real>
void check_cross_entropy(const CrossEntropy<Real>& a) {
    CHECK(a.n >= 0 && a.v > 0, "n {}, v {}", a.n, a.v);
    for (std::int64_t row = 0; row < a.n; ++row) {
        const std::int64_t target = a.target_n[row];
        CHECK(target == kIgnoredTarget || (target >= 0 && target < a.v), "row {}, target {}, v {}",
              row, target, a.v);
    }
}

template <class Real>
void check_adamw(const AdamwStep<Real>& a) {
    CHECK(a.count >= 0 && a.step >= 1, "count {}, step {}", a.count, a.step);
}

}  // namespace gruca::kernels
