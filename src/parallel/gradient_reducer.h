// parallel/gradient_reducer.h
//
// Data parallelism at the end of a step: every rank has summed the gradients and losses of its own
// samples; afterwards every rank has the sums over all of them.
//
//   GradientReducer<float> reducer(mesh, gradients);
//   ...
//   const StepTotals all = reducer.reduce({.loss_sum = loss, .tokens = tokens, .stop = asked});
//   scale gradients by 1 / all.tokens
//
// Sums, never means: gradients arrive as the gradient of the *summed* token losses. Dividing by the
// number of tokens of all ranks is the caller's, once, so that ranks and micro-batches with unequal
// numbers of tokens weigh what they should. A rank without samples joins with zeros.
//
// Sums are taken in rank order (comm.h), so all ranks get the same bits; small gradients travel
// together in one bucket, which changes no bit.
//
// Owned by the rank's thread. The gradients stay where they are while this lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/mesh.h"

namespace gruca::parallel {

// What a step's ranks add up beside the gradients.
struct StepTotals {
    double loss_sum = 0;      // Over tokens, in nats.
    std::int64_t tokens = 0;  // That counted in the loss.
    bool stop = false;        // Someone asked this rank to stop; afterwards: any rank.

    friend bool operator==(const StepTotals&, const StepTotals&) = default;
};

StepTotals sum_over_ranks(Mesh& mesh, const StepTotals& mine);

inline constexpr std::size_t kBucketBytesDefault = 4u << 20;

// Real is float or double.
template <class Real>
class GradientReducer final {
  public:
    // All ranks give gradients of the same lengths in the same order.
    GradientReducer(Mesh& mesh, std::vector<std::span<Real>> gradients,
                    std::size_t bucket_bytes_max = kBucketBytesDefault);

    // Replaces every gradient and returns the totals, summed over the data axis.
    StepTotals reduce(const StepTotals& mine);

  private:
    // Gradients that travel in one message. One alone is summed where it lies.
    using Bucket = std::vector<std::span<Real>>;

    void reduce_packed(const Bucket& bucket);

    Mesh& mesh_;
    std::vector<Bucket> buckets_;
    std::vector<Real> packed_;  // Room for the largest bucket of several.
};

}  // namespace gruca::parallel
