// store/memory_store.h
//
// An object store that lives and dies with its process. For tests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "store/object_store.h"

namespace gruca::store {

// Thread-safe.
class MemoryStore final : public ObjectStore {
  public:
    std::optional<ObjectInfo> find(std::string_view key) const override;
    std::size_t read(std::string_view key, std::uint64_t offset,
                     std::span<std::byte> into) const override;
    std::unique_ptr<ObjectReader> open(std::string_view key) const override;
    std::unique_ptr<ObjectWriter> begin_put(std::string_view key, PutOptions options) override;
    ListPage list(const ListRequest& request) const override;
    void remove(std::string_view key) override;

  private:
    struct Object {
        std::string body;
        ObjectInfo info;
    };

    struct Content {
        std::string body;
        std::string attributes;
    };

    static std::size_t read_from(const std::string& body, std::uint64_t offset,
                                 std::span<std::byte> into);
    PutOutcome publish(const std::string& key, Content content, PutOptions options);

    class Writer;
    class Reader;

    const SystemClock clock_;
    mutable std::mutex mutex_;  // Guards the two members below.
    std::map<std::string, Object, std::less<>> objects_;
    std::uint64_t version_ = 0;
};

}  // namespace gruca::store
