#include "parallel/gradient_reducer.h"

#include <gtest/gtest.h>

#include "comm/thread_comm.h"

namespace gruca::parallel {
namespace {

using comm::Comm;
using comm::run_ranks;

std::vector<std::vector<float>> gradients_of(int rank) {
    std::vector<std::vector<float>> gradients;
    for (const std::size_t size : {3u, 0u, 1u, 70u, 2u, 900u, 5u, 5u}) {
        std::vector<float>& gradient = gradients.emplace_back(size);
        for (std::size_t i = 0; i < size; ++i) {
            gradient[i] = static_cast<float>(i + size) / static_cast<float>(rank + 3);
        }
    }
    return gradients;
}

std::vector<std::vector<float>> sum_of_gradients(int ranks) {
    auto sum = gradients_of(0);
    for (int rank = 1; rank < ranks; ++rank) {
        const auto more = gradients_of(rank);
        for (std::size_t i = 0; i < sum.size(); ++i) {
            for (std::size_t j = 0; j < sum[i].size(); ++j) sum[i][j] += more[i][j];
        }
    }
    return sum;
}

TEST(GradientReducer, every_gradient_is_summed_in_rank_order_whatever_the_bucket_size) {
    for (const std::size_t bucket_bytes : {0u, 4u, 32u, 300u, 1u << 20}) {
        run_ranks(3, [&](Comm& comm) {
            Mesh mesh(comm);
            auto gradients = gradients_of(comm.rank());
            GradientReducer<float> reducer(mesh, {gradients.begin(), gradients.end()},
                                           bucket_bytes);
            reducer.reduce({});
            EXPECT_EQ(gradients, sum_of_gradients(3)) << bucket_bytes;
        });
    }
}

TEST(GradientReducer, totals_are_sums_and_one_rank_that_stops_stops_all) {
    run_ranks(3, [](Comm& comm) {
        Mesh mesh(comm);
        std::vector<double> gradient = {1.0};
        GradientReducer<double> reducer(mesh, {gradient});
        // Rank 2 has run out of samples.
        const bool idle = comm.rank() == 2;
        const StepTotals all = reducer.reduce({.loss_sum = idle ? 0.0 : 1.5,
                                               .tokens = idle ? 0 : 1'000'000'007,
                                               .stop = comm.rank() == 1});
        EXPECT_EQ(all, (StepTotals{.loss_sum = 3.0, .tokens = 2'000'000'014, .stop = true}));
        EXPECT_EQ(gradient[0], 3.0);
        EXPECT_FALSE(reducer.reduce({}).stop);
    });
}

TEST(GradientReducer, gradients_weighted_by_tokens_equal_those_of_one_rank_with_all_samples) {
    // Rank 0 saw one token, rank 1 three: the mean over four tokens, not the mean of two means.
    run_ranks(2, [](Comm& comm) {
        Mesh mesh(comm);
        const std::vector<double> mine =
            comm.rank() == 0 ? std::vector{8.0} : std::vector{1.0, 2.0, 5.0};
        std::vector<double> gradient = {0.0};
        for (const double of_token : mine) gradient[0] += of_token;
        GradientReducer<double> reducer(mesh, {gradient});
        const auto all = reducer.reduce({.tokens = static_cast<std::int64_t>(mine.size())});
        EXPECT_EQ(gradient[0] / static_cast<double>(all.tokens), 4.0);
    });
}

}  // namespace
}  // namespace gruca::parallel
