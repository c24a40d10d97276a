// The promises of comm/comm.h, held against every implementation.

#include "comm/comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>

#include "base/boundary.h"
#include "base/error.h"
#include "comm/comm_contract.h"
#include "comm/thread_comm.h"

namespace gruca::comm {
namespace {

class CommContract : public testing::TestWithParam<Implementation> {
  protected:
    void run(int size, const std::function<void(Comm&)>& body) { GetParam().run_ranks(size, body); }
};

// Numbers whose sum depends on the order in which they are added.
template <class T>
std::vector<T> awkward(int rank, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const T large = static_cast<T>((i % 3 == 0) ? 1e8 : 3.0);
        values[i] = (rank % 2 == 0 ? large : -large) + static_cast<T>(i % 7) / T(3) +
                    static_cast<T>(rank) / T(10);
    }
    return values;
}

template <class T>
std::vector<T> sum_in_rank_order(int size, std::size_t count) {
    std::vector<T> total = awkward<T>(0, count);
    for (int rank = 1; rank < size; ++rank) {
        const auto values = awkward<T>(rank, count);
        for (std::size_t i = 0; i < count; ++i) total[i] += values[i];
    }
    return total;
}

TEST_P(CommContract, a_sum_is_taken_in_rank_order_and_is_the_same_everywhere) {
    const std::size_t several_segments = 1'100'001;
    for (const int size : {1, 2, 3, 4}) {
        run(size, [&](Comm& comm) {
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3},
                                            std::size_t{1000}, several_segments}) {
                if (count == several_segments && size != 3) continue;
                auto floats = awkward<float>(comm.rank(), count);
                auto doubles = awkward<double>(comm.rank(), count);
                comm.all_reduce_sum(std::span(floats));
                comm.all_reduce_sum(std::span(doubles));
                EXPECT_EQ(floats, sum_in_rank_order<float>(size, count)) << size << " x " << count;
                EXPECT_EQ(doubles, sum_in_rank_order<double>(size, count)) << size;
            }
        });
    }
}

TEST_P(CommContract, a_broadcast_brings_the_roots_bytes_to_all) {
    run(3, [](Comm& comm) {
        for (int root = 0; root < comm.size(); ++root) {
            std::vector<int> values(1000, comm.rank());
            comm.broadcast(std::as_writable_bytes(std::span(values)), root);
            EXPECT_EQ(values, std::vector<int>(1000, root));
        }
    });
}

TEST_P(CommContract, texts_of_different_lengths_are_gathered_in_rank_order) {
    run(3, [](Comm& comm) {
        const std::string mine(static_cast<std::size_t>(comm.rank()) * 3, 'x');
        EXPECT_THAT(all_gather_text(comm, mine), testing::ElementsAre("", "xxx", "xxxxxx"));
    });
}

TEST_P(CommContract, what_one_rank_fails_at_fails_on_all_and_the_group_goes_on) {
    run(3, [](Comm& comm) {
        const auto fail_on = [&](int failing) {
            return run_guarded([&] {
                all_gather_outcome(comm, [&]() -> std::string {
                    if (comm.rank() == failing) throw Error(ErrorCode::data_loss, "torn");
                    return "fine";
                });
            });
        };
        const auto error = fail_on(1);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), ErrorCode::data_loss);
        EXPECT_EQ(error->message(), "rank 1: torn");
        EXPECT_FALSE(fail_on(-1));
        EXPECT_THAT(all_gather_outcome(comm, [&] { return std::to_string(comm.rank()); }),
                    testing::ElementsAre("0", "1", "2"));
    });
}

TEST_P(CommContract, a_barrier_holds_until_the_last_rank_has_come) {
    std::atomic<int> arrived = 0;
    run(4, [&](Comm& comm) {
        for (int round = 1; round <= 20; ++round) {
            ++arrived;
            comm.barrier();
            EXPECT_GE(arrived, 4 * round);
        }
    });
}

TEST_P(CommContract, an_abort_frees_every_blocked_rank_and_breaks_the_group) {
    std::atomic<int> cancelled = 0;
    const auto expect_cancelled = [&](const std::function<void()>& collective) {
        try {
            collective();
            ADD_FAILURE() << "a collective went on after an abort";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
            EXPECT_THAT(error.message(), testing::HasSubstr("disk full"));
            ++cancelled;
        }
    };
    std::latch others_are_about_to_block(2);
    run(3, [&](Comm& comm) {
        if (comm.rank() == 1) {
            others_are_about_to_block.wait();
            comm.abort("disk full");
        } else {
            others_are_about_to_block.count_down();
        }
        std::vector<float> values(1000, 1.0f);
        if (comm.rank() != 1) expect_cancelled([&] { comm.all_reduce_sum(std::span(values)); });
        expect_cancelled([&] { comm.barrier(); });
    });
    EXPECT_EQ(cancelled, 5);
}

std::vector<Implementation> all_implementations() {
    std::vector<Implementation> all = gloo_implementations();
    all.push_back({"threads", [](int size, const auto& body) { run_ranks(size, body); }});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Every, CommContract, testing::ValuesIn(all_implementations()),
                         [](const auto& test) { return test.param.name; });

TEST(ThreadComm, a_silent_rank_is_named_when_time_is_up) {
    ThreadGroup group(2, {.timeout = std::chrono::milliseconds(20)});
    try {
        group.comm(0).barrier();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
        EXPECT_THAT(error.message(), testing::HasSubstr("rank 1"));
        EXPECT_THAT(error.message(), testing::HasSubstr("barrier"));
    }
    EXPECT_THROW(group.comm(1).barrier(), Error);
}

TEST(ThreadComm, ranks_that_call_different_collectives_fail) {
    try {
        run_ranks(2, [](Comm& comm) {
            std::vector<float> values(static_cast<std::size_t>(3 + comm.rank()));
            comm.all_reduce_sum(std::span(values));
        });
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::internal);
    }
}

TEST(ThreadComm, the_cause_is_thrown_not_what_followed_from_it) {
    try {
        run_ranks(3, [](Comm& comm) {
            if (comm.rank() == 2) throw Error(ErrorCode::data_loss, "shard is damaged");
            comm.barrier();
        });
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::data_loss);
    }
}

}  // namespace
}  // namespace gruca::comm
