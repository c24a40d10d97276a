#include "parallel/gradient_reducer.h"

#include <algorithm>

namespace gruca::parallel {
namespace {

template <class Real>
std::size_t total_size(const std::vector<std::span<Real>>& spans) {
    std::size_t total = 0;
    for (const auto& span : spans) total += span.size();
    return total;
}

}  // namespace

StepTotals sum_over_ranks(Mesh& mesh, const StepTotals& mine) {
    // Counts below 2^53 are exact in a double.
    double sums[] = {mine.loss_sum, static_cast<double>(mine.tokens), mine.stop ? 1.0 : 0.0};
    mesh.data().all_reduce_sum(std::span<double>(sums));
    return {
        .loss_sum = sums[0], .tokens = static_cast<std::int64_t>(sums[1]), .stop = sums[2] > 0.0};
}

template <class Real>
GradientReducer<Real>::GradientReducer(Mesh& mesh, std::vector<std::span<Real>> gradients,
                                       std::size_t bucket_bytes_max)
    : mesh_(mesh) {
    const std::size_t bucket_max = std::max<std::size_t>(bucket_bytes_max / sizeof(Real), 1);
    std::size_t open = 0;  // Elements in the last bucket, which still takes more; 0: none does.
    for (const std::span<Real> gradient : gradients) {
        if (gradient.empty()) continue;
        if (open == 0 || open + gradient.size() > bucket_max) {
            buckets_.emplace_back();
            open = 0;
        }
        buckets_.back().push_back(gradient);
        open += gradient.size();
    }
    for (const Bucket& bucket : buckets_) {
        if (bucket.size() > 1) packed_.resize(std::max(packed_.size(), total_size(bucket)));
    }
}

template <class Real>
StepTotals GradientReducer<Real>::reduce(const StepTotals& mine) {
    for (const Bucket& bucket : buckets_) {
        if (bucket.size() == 1) {
            mesh_.data().all_reduce_sum(bucket[0]);
        } else {
            reduce_packed(bucket);
        }
    }
    return sum_over_ranks(mesh_, mine);
}

template <class Real>
void GradientReducer<Real>::reduce_packed(const Bucket& bucket) {
    auto at = packed_.begin();
    for (const auto& gradient : bucket) at = std::copy(gradient.begin(), gradient.end(), at);
    const auto count = static_cast<std::size_t>(at - packed_.begin());
    mesh_.data().all_reduce_sum(std::span(packed_).first(count));
    auto from = packed_.cbegin();
    for (const auto& gradient : bucket) {
        std::copy_n(from, gradient.size(), gradient.begin());
        from += static_cast<std::ptrdiff_t>(gradient.size());
    }
}

template class GradientReducer<float>;
template class GradientReducer<double>;

}  // namespace gruca::parallel
