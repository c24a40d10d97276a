#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
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

void add_range(const Add<float>& a, std::int64_t begin, std::int64_t end) {
    for_lanes(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto sum = hn::Add(hn::LoadU(d, a.a + begin + i), hn::LoadU(d, a.b + begin + i));
        hn::StoreU(sum, d, a.y + begin + i);
    });
}

double squares_of_range(const SumOfSquares<float>& a, std::int64_t begin, std::int64_t end) {
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(dd));
    auto even = hn::Zero(dd);
    auto odd = hn::Zero(dd);
    std::int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
        const auto first = hn::PromoteTo(dd, hn::LoadU(d, a.x + i));
        const auto second = hn::PromoteTo(dd, hn::LoadU(d, a.x + i + lanes));
        even = hn::MulAdd(first, first, even);
        odd = hn::MulAdd(second, second, odd);
    }
    double sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(even, odd)));
    for (; i < end; ++i) sum += double{a.x[i]} * double{a.x[i]};
    return sum;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gruca::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gruca::kernels {
namespace {

HWY_EXPORT(add_range);
HWY_EXPORT(squares_of_range);

constexpr std::int64_t kPieceLength = 65536;
constexpr std::int64_t kSquareSegments = 64;

}  // namespace

void cpu::add(const Add<float>& args) {
    parallel_ranges(args.count, kPieceLength, [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(add_range)(args, begin, end);
    });
}

void cpu::sum_of_squares(const SumOfSquares<float>& args) {
    double partial[kSquareSegments] = {};
    const std::int64_t length = (args.count + kSquareSegments - 1) / kSquareSegments;
    parallel_ranges(
        args.count, std::max<std::int64_t>(length, 1), [&](std::int64_t begin, std::int64_t end) {
            partial[begin / length] = HWY_DYNAMIC_DISPATCH(squares_of_range)(args, begin, end);
        });
    double sum = 0;
    for (const double part : partial) sum += part;
    *args.sum += sum;
}

}  // namespace gruca::kernels
#endif
