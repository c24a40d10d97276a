#include "comm/thread_comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/boundary.h"
#include "base/check.h"
#include "base/error.h"

namespace gruca::comm {
namespace {

enum class Kind { sum_float, sum_double, broadcast, all_gather, barrier };

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::sum_float:
        case Kind::sum_double:
            return "all_reduce_sum";
        case Kind::broadcast:
            return "broadcast";
        case Kind::all_gather:
            return "all_gather";
        case Kind::barrier:
            return "barrier";
    }
    return "";
}

// What one rank brought to a collective.
struct Call {
    Kind kind;
    std::span<const std::byte> in = {};
    std::span<std::byte> out = {};
    int root = 0;

    bool matches(const Call& other) const {
        return kind == other.kind && in.size() == other.in.size() && root == other.root;
    }
    std::string text() const { return fmt::format("{} of {} bytes", name_of(kind), in.size()); }
};

template <class T>
void sum_in_rank_order(const std::vector<Call>& calls) {
    const std::size_t count = calls[0].in.size() / sizeof(T);
    auto* total = reinterpret_cast<T*>(calls[0].out.data());
    for (std::size_t rank = 1; rank < calls.size(); ++rank) {
        const auto* values = reinterpret_cast<const T*>(calls[rank].in.data());
        for (std::size_t i = 0; i < count; ++i) total[i] += values[i];
    }
    for (std::size_t rank = 1; rank < calls.size(); ++rank) {
        if (count > 0) std::memcpy(calls[rank].out.data(), total, calls[0].in.size());
    }
}

void carry_out(const std::vector<Call>& calls) {
    switch (calls[0].kind) {
        case Kind::sum_float:
            return sum_in_rank_order<float>(calls);
        case Kind::sum_double:
            return sum_in_rank_order<double>(calls);
        case Kind::broadcast: {
            const Call& from = calls[static_cast<std::size_t>(calls[0].root)];
            for (const Call& to : calls) {
                if (to.out.empty() || &to == &from) continue;
                std::memcpy(to.out.data(), from.in.data(), from.in.size());
            }
            return;
        }
        case Kind::all_gather:
            for (const Call& to : calls) {
                std::size_t offset = 0;
                for (const Call& from : calls) {
                    if (from.in.empty()) continue;
                    std::memcpy(to.out.data() + offset, from.in.data(), from.in.size());
                    offset += from.in.size();
                }
            }
            return;
        case Kind::barrier:
            return;
    }
}

}  // namespace

// The meeting point. The last rank to arrive carries the collective out for all.
class ThreadGroup::State {
  public:
    State(int size, ThreadGroupOptions options)
        : options_(options), calls_(static_cast<std::size_t>(size)) {}

    int size() const { return static_cast<int>(calls_.size()); }

    void enter(int rank, const Call& call) {
        std::unique_lock lock(mutex_);
        throw_if_broken();
        calls_[static_cast<std::size_t>(rank)] = call;
        const auto missing = std::count(calls_.begin(), calls_.end(), std::nullopt);
        if (missing == 0) return finish();
        const std::uint64_t mine = generation_;
        const bool in_time = changed_.wait_for(
            lock, options_.timeout, [&] { return generation_ != mine || broken_.has_value(); });
        // A collective that was carried out counts, even if the group broke just afterwards.
        if (generation_ != mine) return;
        throw_if_broken();
        if (in_time) return;
        const std::string late = first_missing();
        broken_ = fmt::format("rank {} gave up waiting for {}", rank, late);
        changed_.notify_all();
        throw Error(ErrorCode::deadline_exceeded,
                    fmt::format("no word from {} within {} ms, in {}", late,
                                options_.timeout.count(), call.text()));
    }

    void abort(int rank, std::string_view reason) {
        const std::lock_guard lock(mutex_);
        if (!broken_) broken_ = fmt::format("rank {} aborted: {}", rank, reason);
        changed_.notify_all();
    }

  private:
    void throw_if_broken() const {
        if (broken_) throw Error(ErrorCode::cancelled, *broken_);
    }

    std::string first_missing() const {
        const auto at = std::find(calls_.begin(), calls_.end(), std::nullopt);
        return fmt::format("rank {}", at - calls_.begin());
    }

    void finish() {
        std::vector<Call> calls;
        for (std::optional<Call>& call : calls_) calls.push_back(*std::exchange(call, {}));
        for (std::size_t rank = 1; rank < calls.size(); ++rank) {
            if (calls[rank].matches(calls[0])) continue;
            broken_ = fmt::format("rank 0 called {}, but rank {} called {}", calls[0].text(), rank,
                                  calls[rank].text());
            changed_.notify_all();
            throw Error(ErrorCode::internal, *broken_);
        }
        carry_out(calls);
        ++generation_;
        changed_.notify_all();
    }

    const ThreadGroupOptions options_;
    std::mutex mutex_;  // Guards everything below.
    std::condition_variable changed_;
    std::vector<std::optional<Call>> calls_;  // Of the collective under way, by rank.
    std::uint64_t generation_ = 0;            // Collectives carried out so far.
    std::optional<std::string> broken_;       // Why the group ended.
};

class ThreadGroup::ThreadComm final : public Comm {
  public:
    ThreadComm(State& state, int rank) : state_(state), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return state_.size(); }

    void all_reduce_sum(std::span<float> values) override {
        const auto bytes = std::as_writable_bytes(values);
        state_.enter(rank_, {.kind = Kind::sum_float, .in = bytes, .out = bytes});
    }
    void all_reduce_sum(std::span<double> values) override {
        const auto bytes = std::as_writable_bytes(values);
        state_.enter(rank_, {.kind = Kind::sum_double, .in = bytes, .out = bytes});
    }
    void broadcast(std::span<std::byte> bytes, int root) override {
        CHECK(root >= 0 && root < size(), "root {} of {} ranks", root, size());
        state_.enter(rank_, {.kind = Kind::broadcast, .in = bytes, .out = bytes, .root = root});
    }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        CHECK(all.size() == mine.size() * static_cast<std::size_t>(size()),
              "room for {} bytes, {} ranks of {}", all.size(), size(), mine.size());
        state_.enter(rank_, {.kind = Kind::all_gather, .in = mine, .out = all});
    }
    void barrier() override { state_.enter(rank_, {.kind = Kind::barrier}); }

    void abort(std::string_view reason) noexcept override { state_.abort(rank_, reason); }

  private:
    State& state_;
    const int rank_;
};

ThreadGroup::ThreadGroup(int size, ThreadGroupOptions options) {
    CHECK(size > 0, "a group of {} ranks", size);
    state_ = std::make_unique<State>(size, options);
    for (int rank = 0; rank < size; ++rank) {
        ranks_.push_back(std::make_unique<ThreadComm>(*state_, rank));
    }
}

ThreadGroup::~ThreadGroup() = default;

int ThreadGroup::size() const {
    return state_->size();
}

Comm& ThreadGroup::comm(int rank) {
    CHECK(rank >= 0 && rank < size(), "rank {} of {}", rank, size());
    return *ranks_[static_cast<std::size_t>(rank)];
}

void run_ranks(int size, const std::function<void(Comm&)>& body, ThreadGroupOptions options) {
    ThreadGroup group(size, options);
    std::mutex mutex;
    std::optional<Error> cause;  // Guarded by mutex.
    const auto run = [&](int rank) {
        const auto error = run_guarded([&] { body(group.comm(rank)); });
        if (!error) return;
        {
            const std::lock_guard lock(mutex);
            if (!cause || cause->code() == ErrorCode::cancelled) cause = *error;
        }
        group.comm(rank).abort(error->message());
    };
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < size; ++rank) threads.emplace_back(run, rank);
    }
    if (cause) throw Error(*cause);
}

}  // namespace gruca::comm
