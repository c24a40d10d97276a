// kernels/cpu/parallel.h
//
// How the cpu kernels use threads. Work is cut into pieces by the problem's shape; any thread may
// take any piece, so results depend neither on the number of threads nor on their luck.
#pragma once

#include <omp.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdint>

namespace gruca::kernels {

// Subnormal numbers cost a hundred times an ordinary operation and change nothing that matters:
// while this lives, its thread reads and writes them as zero.
class FlushSubnormals {
  public:
    FlushSubnormals() : kept_(_mm_getcsr()) { _mm_setcsr(kept_ | kFlushToZeroAndReadAsZero); }
    ~FlushSubnormals() { _mm_setcsr(kept_); }
    FlushSubnormals(const FlushSubnormals&) = delete;
    FlushSubnormals& operator=(const FlushSubnormals&) = delete;

  private:
    static constexpr unsigned kFlushToZeroAndReadAsZero = 0x8040;
    const unsigned kept_;
};

inline std::int64_t thread_count() {
    return omp_in_parallel() ? 1 : omp_get_max_threads();
}

// Calls piece(i, thread) for every i in [0, pieces), thread < thread_count(). One thread runs them
// here, without OpenMP.
template <class Piece>
void parallel_for(std::int64_t pieces, const Piece& piece) {
    const std::int64_t threads = std::min(pieces, thread_count());
    if (threads <= 1) {
        const FlushSubnormals flush;
        for (std::int64_t i = 0; i < pieces; ++i) piece(i, std::int64_t{0});
        return;
    }
#pragma omp parallel num_threads(static_cast <int>(threads))
    {
        const FlushSubnormals flush;
        const std::int64_t thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t i = 0; i < pieces; ++i) piece(i, thread);
    }
}

// Cuts [0, count) into ranges of `length` and calls piece(begin, end) for each.
template <class Piece>
void parallel_ranges(std::int64_t count, std::int64_t length, const Piece& piece) {
    parallel_for((count + length - 1) / length, [&](std::int64_t i, std::int64_t /*thread*/) {
        piece(i * length, std::min(count, (i + 1) * length));
    });
}

}  // namespace gruca::kernels
