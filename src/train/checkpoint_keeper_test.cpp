// Resume: a training that was interrupted ends bit for bit as one that was not.
#include "train/checkpoint_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/boundary.h"
#include "store/faulty_store.h"
#include "store/memory_store.h"
#include "train/training_fixture.h"

namespace gruca::train {
namespace {

using testing::a_tiny_spec;
using testing::CountingSamples;
using testing::events_in;
using ::testing::HasSubstr;
using testing::Rank;

struct Ending {
    std::vector<float> weights, first, second;
    std::string output;
    friend bool operator==(const Ending& a, const Ending& b) {
        return a.weights == b.weights && a.first == b.first && a.second == b.second;
    }
};

// One run over `ranks` with its checkpoints in `store`, until max_steps, or until all are stopped
// after `stop_after` steps.
Ending run(int ranks, const spec::TrainerSpec& spec, store::ObjectStore& store,
           std::int64_t stop_after = -1) {
    Ending ending;
    comm::run_ranks(ranks, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        CheckpointKeeper<float> keeper(
            {.trainer = rank.trainer, .mesh = rank.mesh, .store = store, .spec = rank.spec});
        const CountingSamples samples;
        if (stop_after >= 0) {
            keeper.restore();
            while (rank.trainer.progress().step < stop_after) rank.trainer.step(samples, false);
            rank.stop_asked = true;  // One more step, then the end.
            keeper.save();
        }
        rank.run(samples, &keeper);
        if (comm.rank() != 0) return;
        const auto first = rank.trainer.optimizer().first_moment().values();
        const auto second = rank.trainer.optimizer().second_moment().values();
        ending = {.weights = rank.weights(),
                  .first = {first.begin(), first.end()},
                  .second = {second.begin(), second.end()},
                  .output = rank.output.str()};
    });
    return ending;
}

class ResumeOf : public ::testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(ResumeOf, an_interrupted_training_ends_as_an_unbroken_one_bit_for_bit) {
    const auto [ranks, architecture] = GetParam();
    const spec::TrainerSpec spec = a_tiny_spec(architecture);
    store::MemoryStore unbroken_store, store;
    const Ending unbroken = run(ranks, spec, unbroken_store);
    run(ranks, spec, store, 1);
    run(ranks, spec, store, 3);
    const Ending resumed = run(ranks, spec, store);
    EXPECT_EQ(resumed, unbroken);
    EXPECT_EQ(events_in<spec::ResumeEvent>(resumed.output).at(0).step, 4);
    EXPECT_EQ(events_in<spec::StepEvent>(resumed.output).at(0).step, 5);
    // Not only the weights: each reported step says the same.
    const auto steps = events_in<spec::StepEvent>(resumed.output);
    const auto wanted = events_in<spec::StepEvent>(unbroken.output);
    EXPECT_EQ(spec::write_fields(steps.back()), spec::write_fields(wanted.back()));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ResumeOf,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Values("gpt2", "llama")),
                         [](const auto& which) {
                             return std::string(std::get<1>(which.param)) + "_on_" +
                                    std::to_string(std::get<0>(which.param));
                         });

TEST(Resume, a_skipped_step_stays_skipped_and_neither_schedule_nor_data_slip) {
    const CountingSamples samples;
    store::MemoryStore store;
    comm::run_ranks(2, [&](comm::Comm& comm) {
        const auto keep = [&](Rank<float>& rank) {
            return CheckpointKeeper<float>(
                {.trainer = rank.trainer, .mesh = rank.mesh, .store = store, .spec = rank.spec});
        };
        Rank<float> unbroken(comm, a_tiny_spec()), resumed(comm, a_tiny_spec());
        unbroken.trainer.step(samples, false);
        float& victim = unbroken.trainer.weights().values()[5];
        const float was = std::exchange(victim, std::nanf(""));
        EXPECT_TRUE(unbroken.trainer.step(samples, false).skipped);
        victim = was;
        keep(unbroken).save();

        ASSERT_TRUE(keep(resumed).restore());
        EXPECT_EQ(resumed.trainer.progress().step, 2);
        EXPECT_EQ(resumed.trainer.progress().bad_steps, 1);
        EXPECT_EQ(resumed.trainer.optimizer().updates(), 1);
        for (int i = 0; i < 2; ++i) {
            const StepResult wanted = unbroken.trainer.step(samples, false);
            const StepResult result = resumed.trainer.step(samples, false);
            EXPECT_EQ(result.loss, wanted.loss);
            EXPECT_EQ(result.learning_rate, wanted.learning_rate);
        }
        EXPECT_EQ(resumed.weights(), unbroken.weights());
    });
}

TEST(Resume, on_another_number_of_ranks_continues_with_the_same_samples) {
    const spec::TrainerSpec spec = a_tiny_spec();
    store::MemoryStore unbroken_store, store;
    const Ending unbroken = run(1, spec, unbroken_store);
    run(4, spec, store, 2);
    const Ending resumed = run(2, spec, store);
    ASSERT_EQ(resumed.weights.size(), unbroken.weights.size());
    for (std::size_t i = 0; i < resumed.weights.size(); ++i) {
        ASSERT_NEAR(resumed.weights[i], unbroken.weights[i], 1e-4);
    }
}

// Notes which samples were asked for. Thread-safe.
class RecordingSamples final : public SampleSource {
  public:
    std::int64_t count() const override { return samples_.count(); }
    void read(std::int64_t index, std::span<std::int32_t> tokens) const override {
        samples_.read(index, tokens);
        const std::lock_guard lock(mutex_);
        seen_.push_back(index);
    }
    std::vector<std::int64_t> take_sorted() {
        std::vector<std::int64_t> seen = std::exchange(seen_, {});
        std::sort(seen.begin(), seen.end());
        return seen;
    }

  private:
    const CountingSamples samples_;
    mutable std::mutex mutex_;  // Guards the member below.
    mutable std::vector<std::int64_t> seen_;
};

TEST(Resume, no_sample_is_repeated_or_skipped_when_ranks_come_and_go) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.micro_batch_size = 1;
    store::MemoryStore store;
    RecordingSamples samples;
    std::int64_t next = 0;
    for (const int ranks : {4, 2, 8}) {
        spec.max_steps = next / spec.global_batch_size + 2;
        comm::run_ranks(ranks, [&](comm::Comm& comm) {
            Rank<float> rank(comm, spec);
            CheckpointKeeper<float> keeper(
                {.trainer = rank.trainer, .mesh = rank.mesh, .store = store, .spec = rank.spec});
            rank.run(samples, &keeper);
        });
        std::vector<std::int64_t> wanted(static_cast<std::size_t>(2 * spec.global_batch_size));
        std::iota(wanted.begin(), wanted.end(), next);
        EXPECT_EQ(samples.take_sorted(), wanted) << ranks;
        next += 2 * spec.global_batch_size;
    }
}

TEST(Resume, a_finished_training_is_not_trained_further) {
    const spec::TrainerSpec spec = a_tiny_spec();
    store::MemoryStore store;
    const Ending first = run(1, spec, store);
    const Ending again = run(1, spec, store);
    EXPECT_EQ(again, first);
    EXPECT_TRUE(events_in<spec::StepEvent>(again.output).empty());
}

TEST(Resume, a_checkpoint_of_another_model_is_refused_and_the_difference_named) {
    spec::TrainerSpec spec = a_tiny_spec();
    store::MemoryStore store;
    run(2, spec, store);
    spec.width = 20;
    const auto error = run_guarded([&] { run(2, spec, store); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::precondition_failed);
    EXPECT_THAT(error->message(), HasSubstr("width is 16 there and 20 here"));
}

TEST(Resume, a_schedule_changed_on_purpose_is_followed) {
    spec::TrainerSpec spec = a_tiny_spec();
    store::MemoryStore store;
    run(1, spec, store);
    spec.max_steps = 8;
    spec.learning_rate = spec.min_learning_rate = 5e-4;
    const auto steps = events_in<spec::StepEvent>(run(1, spec, store).output);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].step, 7);
    EXPECT_DOUBLE_EQ(steps[0].learning_rate, 5e-4);
}

TEST(Checkpoints, only_as_many_as_asked_for_are_kept) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.checkpoint_interval = 1;
    spec.checkpoints_kept = 3;
    store::MemoryStore store;
    run(2, spec, store);
    EXPECT_THAT(checkpoint::steps(store, ""), ::testing::ElementsAre(6, 5, 4));
}

TEST(Checkpoints, a_disk_that_fills_up_ends_all_ranks_and_leaves_the_last_one_whole) {
    spec::TrainerSpec spec = a_tiny_spec();
    spec.checkpoint_interval = 2;
    store::MemoryStore beneath;
    run(2, spec, beneath, 2);
    store::FaultyStore full(beneath, store::Fault{.write = 3,
                                                  .kind = store::FaultKind::from_then_on,
                                                  .code = ErrorCode::resource_exhausted});
    std::atomic<int> failed = 0;
    comm::run_ranks(2, [&](comm::Comm& comm) {
        Rank<float> rank(comm, spec);
        CheckpointKeeper<float> keeper(
            {.trainer = rank.trainer, .mesh = rank.mesh, .store = full, .spec = rank.spec});
        const auto error = run_guarded([&] { rank.run(CountingSamples(), &keeper); });
        if (error && error->code() == ErrorCode::resource_exhausted) ++failed;
    });
    EXPECT_EQ(failed, 2);
    EXPECT_EQ(checkpoint::steps(beneath, "").at(0), 3);

    store::MemoryStore unbroken_store;
    EXPECT_EQ(run(2, spec, beneath), run(2, spec, unbroken_store));
}

}  // namespace
}  // namespace gruca::train
