// store/faulty_store.h
//
// A store that fails on command, and the loop that makes it fail everywhere. Whatever writes to a
// store is tested with its write 1, 2, 3, ... failing.
//
//   const int points = for_each_fault_point([](FaultyStore& store, ObjectStore& beneath) {
//       run_guarded([&] { save_checkpoint(store); });
//       ...  // What `beneath` must look like, whichever write has failed.
//   });
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "base/error.h"
#include "store/object_store.h"

namespace gruca::store {

enum class FaultKind {
    once,              // That write alone fails and has no effect.
    from_then_on,      // That write and every later one fail and have no effect.
    once_after_effect  // That write is done, and reported as failed: an answer that got lost.
};

struct Fault {
    int write;  // Which write, from 1. begin_put, write, flush, commit and remove each count as
                // one.
    FaultKind kind;
    ErrorCode code = ErrorCode::unavailable;
};

// Thread-safe. `beneath` must outlive it.
class FaultyStore final : public ObjectStore {
  public:
    explicit FaultyStore(ObjectStore& beneath, std::optional<Fault> fault = {});

    int writes() const { return writes_; }  // So far, failed ones included.

    std::optional<ObjectInfo> find(std::string_view key) const override;
    std::size_t read(std::string_view key, std::uint64_t offset,
                     std::span<std::byte> into) const override;
    std::unique_ptr<ObjectReader> open(std::string_view key) const override;
    std::unique_ptr<ObjectWriter> begin_put(std::string_view key, PutOptions options) override;
    ListPage list(const ListRequest& request) const override;
    void remove(std::string_view key) override;

  private:
    class Writer;

    // Counts a write, does it unless it is to fail, and throws if it is.
    void counted(std::string_view what, const std::function<void()>& write);

    ObjectStore& beneath_;
    const std::optional<Fault> fault_;
    std::atomic<int> writes_ = 0;
};

// Runs `body` on a fresh store without a fault to count its writes, then once for each write and
// kind of fault, each time on a fresh store. Returns how many runs had a fault.
int for_each_fault_point(const std::function<void(FaultyStore& store, ObjectStore& beneath)>& body);

}  // namespace gruca::store
