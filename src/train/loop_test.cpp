// A whole training: what it reports, when it evaluates and saves, how it stops.
#include "train/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/training_fixture.h"

namespace gruca::train {
namespace {

using testing::a_tiny_spec;
using testing::CountingSamples;
using ::testing::ElementsAre;
using testing::events_in;
using testing::Rank;

// Counts what a keeper is asked for.
template <class Real>
struct CountingKeeper final : Keeper {
    explicit CountingKeeper(Trainer<Real>& of) : trainer(of) {}
    bool restore() override { return false; }
    std::int64_t save() override {
        saved.push_back(trainer.progress().step);
        return 100;
    }
    Trainer<Real>& trainer;
    std::vector<std::int64_t> saved;
};

TEST(Loop, saves_and_evaluates_on_the_way_and_once_at_the_end) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.max_steps = 7;
    spec.checkpoint_interval = 2;
    spec.log_interval = 5;
    comm::run_ranks(1, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        CountingKeeper<float> keeper(rank.trainer);
        const CountingSamples samples;
        const LoopOutcome outcome = rank.run(samples, &keeper, &samples);
        EXPECT_THAT(keeper.saved, ElementsAre(2, 4, 6, 7));
        std::vector<std::int64_t> evals, steps;
        for (const auto& event : events_in<spec::EvalEvent>(rank.output.str())) {
            evals.push_back(event.step);
        }
        for (const auto& event : events_in<spec::StepEvent>(rank.output.str())) {
            steps.push_back(event.step);
        }
        EXPECT_THAT(evals, ElementsAre(3, 6, 7));
        EXPECT_THAT(steps, ElementsAre(1, 5, 7));
        EXPECT_EQ(events_in<spec::CheckpointEvent>(rank.output.str()).size(), 4u);
        EXPECT_TRUE(outcome.eval_loss.has_value());
        EXPECT_FALSE(outcome.stopped);
        EXPECT_EQ(events_in<spec::StepEvent>(rank.output.str()).back().tokens, 7 * 8 * 6);
    });
}

TEST(Loop, a_last_step_that_was_saved_and_evaluated_is_not_done_again) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.checkpoint_interval = 3;
    comm::run_ranks(1, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        CountingKeeper<float> keeper(rank.trainer);
        const CountingSamples samples;
        rank.run(samples, &keeper, &samples);
        EXPECT_THAT(keeper.saved, ElementsAre(3, 6));
        EXPECT_EQ(events_in<spec::EvalEvent>(rank.output.str()).size(), 2u);
    });
}

TEST(Loop, a_stop_ends_all_ranks_after_the_same_step_with_a_checkpoint) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.max_steps = 1000;
    spec.checkpoint_interval = 0;
    std::vector<std::int64_t> ended(2);
    comm::run_ranks(2, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        CountingKeeper<float> keeper(rank.trainer);
        rank.stop_asked = comm.rank() == 1;
        const LoopOutcome outcome = rank.run(CountingSamples(), &keeper);
        EXPECT_TRUE(outcome.stopped);
        EXPECT_THAT(keeper.saved, ElementsAre(1));
        ended[static_cast<std::size_t>(comm.rank())] = rank.trainer.progress().step;
    });
    EXPECT_THAT(ended, ElementsAre(1, 1));
}

TEST(Loop, a_stop_is_not_held_up_by_an_evaluation) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.eval_interval = 1;
    comm::run_ranks(1, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        CountingKeeper<float> keeper(rank.trainer);
        rank.stop_asked = true;
        const CountingSamples samples;
        EXPECT_TRUE(rank.run(samples, &keeper, &samples).stopped);
        EXPECT_THAT(keeper.saved, ElementsAre(1));
        EXPECT_TRUE(events_in<spec::EvalEvent>(rank.output.str()).empty());
    });
}

TEST(Loop, a_step_is_saved_before_it_is_evaluated) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.eval_interval = spec.checkpoint_interval = 2;
    spec.max_steps = 3;
    comm::run_ranks(1, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        CountingKeeper<float> keeper(rank.trainer);
        const CountingSamples samples;
        rank.run(samples, &keeper, &samples);
        std::vector<std::string> order;
        for (const std::string& line : split(rank.output.str(), '\n')) {
            const auto event = spec::event_of_line(line);
            if (event) order.push_back(event->at("event").as_string());
        }
        EXPECT_THAT(
            order, ElementsAre("step", "step", "checkpoint", "eval", "step", "checkpoint", "eval"));
    });
}

TEST(Loop, only_the_first_rank_reports_steps) {
    comm::run_ranks(2, [&](comm::Comm& comm) {
        Rank<float> rank(comm, a_tiny_spec());
        rank.run(CountingSamples());
        EXPECT_EQ(events_in<spec::StepEvent>(rank.output.str()).empty(), comm.rank() == 1);
    });
}

TEST(Loop, a_small_model_learns_a_small_world_by_heart) {
    for (const char* architecture : {"gpt2", "llama"}) {
        spec::TrainerSpec spec = a_tiny_spec(architecture);
        spec.max_steps = 150;
        spec.eval_interval = 0;
        spec.micro_batch_size = 4;
        spec.weight_decay = 0;
        comm::run_ranks(2, [&](comm::Comm& comm) {
            Rank<float> rank(comm, spec);
            const LoopOutcome outcome = rank.run(CountingSamples(8));
            EXPECT_LT(outcome.loss, 0.15) << architecture;
        });
    }
}

}  // namespace
}  // namespace gruca::train
