#include "store/faulty_store.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "store/memory_store.h"

namespace gruca::store {

class FaultyStore::Writer final : public ObjectWriter {
  public:
    Writer(FaultyStore& store, std::string key, std::unique_ptr<ObjectWriter> beneath)
        : store_(store), key_(std::move(key)), beneath_(std::move(beneath)) {}

    void write(std::span<const std::byte> bytes) override {
        store_.counted("write to " + key_, [&] { beneath_->write(bytes); });
    }

    void append(const ObjectReader& from, std::uint64_t offset, std::uint64_t bytes) override {
        store_.counted("append to " + key_, [&] { beneath_->append(from, offset, bytes); });
    }

    bool set_attributes(std::string_view attributes) override {
        return beneath_->set_attributes(attributes);
    }

    void flush() override {
        store_.counted("flush of " + key_, [&] { beneath_->flush(); });
    }

    PutOutcome commit() override {
        PutOutcome outcome{};
        store_.counted("commit of " + key_, [&] { outcome = beneath_->commit(); });
        return outcome;
    }

  private:
    FaultyStore& store_;
    const std::string key_;
    const std::unique_ptr<ObjectWriter> beneath_;
};

FaultyStore::FaultyStore(ObjectStore& beneath, std::optional<Fault> fault)
    : beneath_(beneath), fault_(fault) {}

void FaultyStore::counted(std::string_view what, const std::function<void()>& write) {
    const int number = ++writes_;
    const bool fails =
        fault_ && (fault_->kind == FaultKind::from_then_on ? number >= fault_->write
                                                           : number == fault_->write);
    if (!fails || fault_->kind == FaultKind::once_after_effect) write();
    if (fails) {
        throw Error(fault_->code, fmt::format("write {} fails as planned: {}", number, what));
    }
}

std::optional<ObjectInfo> FaultyStore::find(std::string_view key) const {
    return beneath_.find(key);
}

std::size_t FaultyStore::read(std::string_view key, std::uint64_t offset,
                              std::span<std::byte> into) const {
    return beneath_.read(key, offset, into);
}

std::unique_ptr<ObjectReader> FaultyStore::open(std::string_view key) const {
    return beneath_.open(key);
}

std::unique_ptr<ObjectWriter> FaultyStore::begin_put(std::string_view key, PutOptions options) {
    require_valid_key(key);
    std::unique_ptr<ObjectWriter> writer;
    counted("start of " + std::string(key), [&] { writer = beneath_.begin_put(key, options); });
    return std::make_unique<Writer>(*this, std::string(key), std::move(writer));
}

ListPage FaultyStore::list(const ListRequest& request) const {
    return beneath_.list(request);
}

void FaultyStore::remove(std::string_view key) {
    require_valid_key(key);
    counted("removal of " + std::string(key), [&] { beneath_.remove(key); });
}

int for_each_fault_point(
    const std::function<void(FaultyStore& store, ObjectStore& beneath)>& body) {
    const auto writes_of_run = [&](std::optional<Fault> fault) {
        MemoryStore beneath;
        FaultyStore store(beneath, fault);
        body(store, beneath);
        return store.writes();
    };
    const int writes = writes_of_run({});
    int runs = 0;
    for (int write = 1; write <= writes; ++write) {
        for (const FaultKind kind :
             {FaultKind::once, FaultKind::from_then_on, FaultKind::once_after_effect}) {
            writes_of_run(Fault{.write = write, .kind = kind});
            ++runs;
        }
    }
    return runs;
}

}  // namespace gruca::store
