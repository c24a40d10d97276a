// comm/comm.h
//
// How the ranks of one training job exchange numbers. A rank is one participant, 0 to size - 1; all
// ranks call the same collectives in the same order, and each call returns when this rank's part is
// done. Everything above this room moves bytes between ranks only through this interface.
//
//   ThreadComm   ranks are threads of one process; tests and runs on one machine (thread_comm.h)
//   GlooComm     ranks are processes, over TCP (gloo_comm.h)
//
// Every implementation keeps these promises, and comm_test.cpp holds each to them:
//   * A sum is taken in rank order, ((x0 + x1) + x2) + ..., element by element, in the type of its
//     elements. So it depends on nothing but the numbers: not on timing, message sizes or the
//     implementation, and all ranks receive the same bits.
//   * Nothing waits for ever. A peer that is silent for the time-out makes the waiting ranks throw
//     deadline_exceeded, naming the peer and the collective. A peer that died throws unavailable,
//     as soon as the operating system knows.
//   * abort makes every collective of every rank, blocked now or called later, throw cancelled.
//   * After any exception from a collective the group is broken for good: no rank goes on with it.
//     The rank's boundary calls abort and leaves.
//   * Ranks that call different collectives, or the same with different sizes, fail; they are never
//     given wrong numbers.
//
// One thread at a time may call collectives of one Comm; abort may come from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gruca::comm {

class Comm {
  public:
    virtual ~Comm() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;

    // In place. The spans of all ranks have the same length.
    virtual void all_reduce_sum(std::span<float> values) = 0;
    virtual void all_reduce_sum(std::span<double> values) = 0;

    // `bytes` of rank `root` arrive in `bytes` of every other rank.
    virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

    // `mine` of every rank, one after another in rank order, arrive in `all` of every rank. All
    // ranks give the same number of bytes; `all` has room for size() times as many.
    virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

    // Returns when every rank has called it.
    virtual void barrier() = 0;

    // The one call that needs no partner. `reason` is what the other ranks' errors will say.
    virtual void abort(std::string_view reason) noexcept = 0;
};

// all_gather for texts of different lengths; the result has one for each rank. Longer than
// kGatherTextBytesMax throws invalid_argument on every rank.
std::vector<std::string> all_gather_text(Comm& comm, std::string_view mine);
inline constexpr std::size_t kGatherTextBytesMax = 16u << 20;

// Does `work` on every rank and gathers what it returns, by rank. When it throws on any rank, every
// rank throws the error of the first such rank, naming it; the group is intact. `work` calls no
// collective.
std::vector<std::string> all_gather_outcome(Comm& comm, const std::function<std::string()>& work);

}  // namespace gruca::comm
