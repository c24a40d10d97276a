// The promises of checkpoint/checkpoint.h.

#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "base/boundary.h"
#include "checkpoint/manifest.h"
#include "comm/thread_comm.h"
#include "store/faulty_store.h"
#include "store/memory_store.h"

namespace gruca::checkpoint {
namespace {

using comm::Comm;
using comm::run_ranks;
using store::FaultyStore;
using store::MemoryStore;
using store::ObjectStore;
using tensor::Dtype;
using tensor::Shape;
using testing::ElementsAre;
using testing::IsEmpty;

// The state of a small run: two weights all ranks have, and one cut by columns if asked for.
struct State {
    std::vector<float> weight_rc = std::vector<float>(5 * 3);
    std::vector<double> moment_r = std::vector<double>(5);
    std::vector<float> columns = {};  // Of a tensor [4, 12], this rank's.
    Box columns_box = {};

    explicit State(int rank = 0, int ranks = 0) {
        if (ranks == 0) return;
        columns_box = {{0, 12 / ranks * rank}, {4, 12 / ranks}};
        columns.resize(static_cast<std::size_t>(4 * 12 / ranks));
    }

    // Numbers that tell step, tensor and place.
    void fill(int step) {
        for (std::size_t i = 0; i < weight_rc.size(); ++i) {
            weight_rc[i] = static_cast<float>(step) + static_cast<float>(i) / 3;
        }
        for (std::size_t i = 0; i < moment_r.size(); ++i) {
            moment_r[i] = step * 1000 + static_cast<double>(i) / 7;
        }
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const auto width = static_cast<std::size_t>(columns_box.extent[1]);
            const auto column = static_cast<std::size_t>(columns_box.start[1]) + i % width;
            columns[i] =
                static_cast<float>(step * 100) + static_cast<float>(i / width * 12 + column);
        }
    }

    std::vector<SourceSlice> sources() const {
        std::vector<SourceSlice> all = {
            {"weight", Dtype::f32, {5, 3}, whole({5, 3}), std::as_bytes(std::span(weight_rc))},
            {"moment", Dtype::f64, {5}, whole({5}), std::as_bytes(std::span(moment_r))}};
        if (columns.empty()) return all;
        all.push_back(
            {"columns", Dtype::f32, {4, 12}, columns_box, std::as_bytes(std::span(columns))});
        return all;
    }
    std::vector<TargetSlice> targets() {
        std::vector<TargetSlice> all;
        for (const SourceSlice& source : sources()) {
            // The same memory, which is ours to write.
            auto* bytes = const_cast<std::byte*>(source.bytes.data());
            all.push_back({source.name, source.dtype, source.shape, source.box,
                           std::span(bytes, source.bytes.size())});
        }
        return all;
    }

    friend bool operator==(const State&, const State&) = default;
};

void save_step(ObjectStore& store, int step, int ranks = 2, bool with_columns = false) {
    run_ranks(ranks, [&](Comm& comm) {
        State state(comm.rank(), with_columns ? ranks : 0);
        state.fill(step);
        save(store, "run/",
             {.step = step, .slices = state.sources(), .meta = Json::object({{"seen", step}})},
             comm);
    });
}

// Loads on so many ranks, expects all to have found the same and to hold exactly what was saved.
std::optional<Loaded> load_and_compare(const ObjectStore& store, int ranks = 2,
                                       bool with_columns = false) {
    std::vector<std::optional<Loaded>> found(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](Comm& comm) {
        State state(comm.rank(), with_columns ? ranks : 0);
        const State untouched = state;
        const auto loaded = load_newest(store, "run/", state.targets(), comm);
        State expected = untouched;
        if (loaded) expected.fill(static_cast<int>(loaded->step));
        EXPECT_EQ(state, expected) << "rank " << comm.rank();
        if (loaded) {
            EXPECT_EQ(loaded->meta.at("seen").as_int(), loaded->step);
        }
        found[static_cast<std::size_t>(comm.rank())] = loaded;
    });
    for (const auto& one : found) EXPECT_EQ(one.has_value(), found[0].has_value());
    return found[0];
}

std::vector<std::string> keys(const ObjectStore& store, std::string_view prefix = "") {
    std::vector<std::string> all;
    store.for_each(prefix, [&](const store::ObjectInfo& info) { all.push_back(info.key); });
    return all;
}

std::optional<ErrorCode> load_error(const ObjectStore& store) {
    const auto error = run_guarded([&] { load_and_compare(store); });
    return error ? std::optional(error->code()) : std::nullopt;
}

TEST(Checkpoint, any_number_of_ranks_loads_what_any_other_has_saved) {
    for (const int savers : {1, 2, 3}) {
        MemoryStore store;
        save_step(store, 5, savers, true);
        for (const int loaders : {1, 2, 4}) {
            const auto loaded = load_and_compare(store, loaders, true);
            ASSERT_TRUE(loaded) << savers << " to " << loaders;
            EXPECT_EQ(loaded->step, 5);
            EXPECT_THAT(loaded->damaged, IsEmpty());
        }
    }
}

TEST(Checkpoint, it_is_parts_and_a_manifest) {
    MemoryStore store;
    save_step(store, 5);
    EXPECT_THAT(keys(store), ElementsAre("run/step-00000005/manifest.json",
                                         "run/step-00000005/part-00000-of-00002",
                                         "run/step-00000005/part-00001-of-00002"));
}

TEST(Checkpoint, where_there_is_none_nothing_is_loaded) {
    MemoryStore store;
    EXPECT_FALSE(load_and_compare(store));
    store.put(part_key("run/", 5, 0, 1), "a part alone is no checkpoint");
    store.put(manifest_key("run-2/", 5), "and this is another run's");
    EXPECT_FALSE(load_and_compare(store));
}

TEST(Checkpoint, a_tensor_larger_than_a_piece_comes_back_and_its_writing_is_shared) {
    MemoryStore store;
    const Shape shape = {2500, 1001};  // 10 MB.
    std::vector<float> saved(2500 * 1001);
    for (std::size_t i = 0; i < saved.size(); ++i) saved[i] = static_cast<float>(i);
    run_ranks(2, [&](Comm& comm) {
        save(store, "",
             {.step = 1,
              .slices = {{"w", Dtype::f32, shape, whole(shape), std::as_bytes(std::span(saved))}},
              .meta = {}},
             comm);
    });
    EXPECT_GT(store.find(part_key("", 1, 1, 2))->bytes, 1'000'000u);
    std::vector<float> loaded(saved.size());
    run_ranks(1, [&](Comm& comm) {
        load_newest(store, "",
                    std::vector<TargetSlice>{{"w", Dtype::f32, shape, whole(shape),
                                              std::as_writable_bytes(std::span(loaded))}},
                    comm);
    });
    EXPECT_EQ(loaded, saved);
}

TEST(Checkpoint, whatever_write_fails_all_ranks_learn_of_it_and_the_last_one_stays_valid) {
    const int points = store::for_each_fault_point([](FaultyStore& store, ObjectStore& beneath) {
        save_step(beneath, 1);
        std::atomic<int> failed = 0;
        run_ranks(2, [&](Comm& comm) {
            State state;
            state.fill(2);
            const Contents contents{
                .step = 2, .slices = state.sources(), .meta = Json::object({{"seen", 2}})};
            const auto error = run_guarded([&] { save(store, "run/", contents, comm); });
            if (!error) return;
            EXPECT_EQ(error->code(), ErrorCode::unavailable) << error->what();
            ++failed;
        });
        EXPECT_THAT(failed.load(), testing::AnyOf(0, 2));

        const auto loaded = load_and_compare(beneath);
        ASSERT_TRUE(loaded);
        EXPECT_THAT(loaded->damaged, IsEmpty());
        EXPECT_EQ(loaded->step, failed == 0 ? 2 : 1);

        // And the next attempt at the same step is not hindered by what the first has left.
        save_step(beneath, 2, 3);
        EXPECT_EQ(load_and_compare(beneath)->step, 2);
        EXPECT_EQ(keys(beneath, "run/step-00000002/").size(), failed == 0 ? 3u : 4u);
    });
    EXPECT_EQ(points, 27);  // Three objects; start, write and commit; three kinds of fault.
}

TEST(Checkpoint, a_failed_save_leaves_no_parts_behind) {
    MemoryStore beneath;
    FaultyStore store(beneath, store::Fault{.write = 4, .kind = store::FaultKind::once});
    EXPECT_THROW(save_step(store, 2), Error);
    EXPECT_THAT(keys(beneath), IsEmpty());
}

TEST(Checkpoint, no_damage_goes_unnoticed_and_the_one_before_is_used) {
    MemoryStore store;
    save_step(store, 1);
    save_step(store, 2);
    for (const std::string& key : keys(store, "run/step-00000002/")) {
        const std::string good = store.get(key);
        std::vector<std::string> damaged = {good.substr(0, good.size() - 2), ""};
        for (std::size_t at = 0; at < good.size(); at += 11) {
            damaged.push_back(good);
            damaged.back()[at] = static_cast<char>(good[at] ^ 4);
        }
        for (const std::string& body : damaged) {
            // A version that changed is not damage but a refusal, tested with the manifest.
            if (body.find("\"version\":1") == std::string::npos && key.ends_with(".json") &&
                body.size() == good.size()) {
                continue;
            }
            store.put(key, body);
            const auto loaded = load_and_compare(store);
            ASSERT_TRUE(loaded);
            EXPECT_EQ(loaded->step, 1) << key;
            ASSERT_EQ(loaded->damaged.size(), 1u);
            EXPECT_THAT(loaded->damaged[0], testing::HasSubstr("step 2"));
        }
        store.remove(key);
        if (!key.ends_with("manifest.json")) {
            EXPECT_EQ(load_and_compare(store)->step, 1);
        }
        store.put(key, good);
        EXPECT_EQ(load_and_compare(store)->step, 2);
    }
}

TEST(Checkpoint, when_all_are_damaged_that_is_an_error_and_not_a_fresh_start) {
    MemoryStore store;
    save_step(store, 1);
    store.remove(part_key("run/", 1, 1, 2));
    EXPECT_EQ(load_error(store), ErrorCode::data_loss);
}

TEST(Checkpoint, a_run_with_other_tensors_is_refused_on_every_rank) {
    MemoryStore store;
    save_step(store, 1);
    const auto code_with = [&](const TargetSlice& other) {
        std::atomic<int> refused = 0;
        run_ranks(2, [&](Comm& comm) {
            // Only rank 1 asks for what is not there, but both must learn of it.
            State state;
            auto targets = state.targets();
            if (comm.rank() == 1) targets.push_back(other);
            const auto error = run_guarded([&] { load_newest(store, "run/", targets, comm); });
            if (error && error->code() == ErrorCode::precondition_failed) ++refused;
        });
        return refused.load();
    };
    std::vector<std::byte> memory(60);
    EXPECT_EQ(code_with({"bias", Dtype::f32, {15}, whole({15}), memory}), 2);
    EXPECT_EQ(code_with({"weight", Dtype::f32, {3, 5}, whole({3, 5}), memory}), 2);
    EXPECT_EQ(code_with({"moment", Dtype::f32, {5}, whole({5}), std::span(memory).first(20)}), 2);
}

TEST(Checkpoint, a_whole_one_of_the_same_step_is_left_alone_and_a_damaged_one_replaced) {
    MemoryStore store;
    save_step(store, 1);
    const auto outcome_of_saving = [&] {
        SaveOutcome outcome{};
        run_ranks(1, [&](Comm& comm) {
            State state;
            state.fill(1);
            outcome = save(
                store, "run/",
                {.step = 1, .slices = state.sources(), .meta = Json::object({{"seen", 1}})}, comm);
        });
        return outcome;
    };
    EXPECT_EQ(outcome_of_saving(), SaveOutcome::already_there);
    EXPECT_EQ(keys(store).size(), 3u);
    store.put(part_key("run/", 1, 0, 2), "damaged");
    EXPECT_EQ(outcome_of_saving(), SaveOutcome::saved);
    EXPECT_EQ(keys(store).size(), 2u);
    EXPECT_EQ(load_and_compare(store)->step, 1);
}

TEST(Checkpoint, prune_keeps_the_newest_and_what_may_be_under_way) {
    MemoryStore store;
    for (const int step : {10, 20, 30, 40}) save_step(store, step);
    store.put(part_key("run/", 25, 0, 2), "left by a save that failed");
    store.put(part_key("run/", 50, 0, 2), "being written");
    store.put("run/notes.txt", "not ours");
    prune(store, "run/", 40, 2);
    EXPECT_THAT(steps(store, "run/"), ElementsAre(40, 30));
    EXPECT_EQ(load_and_compare(store)->step, 40);
    EXPECT_EQ(keys(store).size(), 3u + 3u + 1u + 1u);
    EXPECT_THAT(keys(store, "run/step-00000025/"), IsEmpty());
    EXPECT_TRUE(store.find("run/notes.txt"));
}

TEST(Checkpoint, prune_does_not_give_up_the_one_just_saved_for_a_newer_one_that_is_damaged) {
    MemoryStore store;
    for (const int step : {10, 40}) save_step(store, step);
    store.remove(part_key("run/", 40, 0, 2));
    ASSERT_EQ(load_and_compare(store)->step, 10);
    save_step(store, 20);
    prune(store, "run/", 20, 1);
    EXPECT_EQ(load_and_compare(store)->step, 20);
    EXPECT_THAT(steps(store, "run/"), ElementsAre(40, 20));
}

TEST(Checkpoint, prune_never_leaves_half_a_checkpoint_whatever_removal_fails) {
    store::for_each_fault_point([](FaultyStore& store, ObjectStore& beneath) {
        for (const int step : {1, 2, 3}) save_step(beneath, step);
        run_guarded([&] { prune(store, "run/", 3, 1); });
        for (const std::int64_t step : steps(beneath, "run/")) {
            EXPECT_EQ(keys(beneath, step_prefix("run/", step)).size(), 3u) << step;
        }
        EXPECT_EQ(load_and_compare(beneath)->step, 3);
    });
}

}  // namespace
}  // namespace gruca::checkpoint
