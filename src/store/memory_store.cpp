#include "store/memory_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace gruca::store {

class MemoryStore::Writer final : public ObjectWriter {
  public:
    Writer(MemoryStore& store, std::string key, PutOptions options)
        : store_(store), key_(std::move(key)), options_(options) {}

    void write(std::span<const std::byte> bytes) override { body_ += text_of(bytes); }

    void append(const ObjectReader& from, std::uint64_t offset, std::uint64_t bytes) override {
        append_by_reading(*this, from, offset, bytes);
    }

    bool set_attributes(std::string_view attributes) override {
        CHECK(attributes.size() <= kAttributesBytesMax, "{} bytes", attributes.size());
        attributes_ = attributes;
        return true;
    }

    PutOutcome commit() override {
        CHECK(!std::exchange(committed_, true), "commit of {} called twice", key_);
        return store_.publish(key_, {.body = std::move(body_), .attributes = attributes_},
                              options_);
    }

  private:
    MemoryStore& store_;
    const std::string key_;
    const PutOptions options_;
    std::string body_;
    std::string attributes_;
    bool committed_ = false;
};

class MemoryStore::Reader final : public ObjectReader {
  public:
    explicit Reader(Object object) : object_(std::move(object)) {}

    const ObjectInfo& info() const override { return object_.info; }
    std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
        return read_from(object_.body, offset, into);
    }

  private:
    const Object object_;
};

std::size_t MemoryStore::read_from(const std::string& body, std::uint64_t offset,
                                   std::span<std::byte> into) {
    if (offset >= body.size() || into.empty()) return 0;
    const std::size_t bytes = std::min(into.size(), body.size() - offset);
    std::memcpy(into.data(), body.data() + offset, bytes);
    return bytes;
}

std::optional<ObjectInfo> MemoryStore::find(std::string_view key) const {
    require_valid_key(key);
    const std::lock_guard lock(mutex_);
    const auto object = objects_.find(key);
    if (object == objects_.end()) return std::nullopt;
    return object->second.info;
}

std::size_t MemoryStore::read(std::string_view key, std::uint64_t offset,
                              std::span<std::byte> into) const {
    require_valid_key(key);
    const std::lock_guard lock(mutex_);
    const auto object = objects_.find(key);
    if (object == objects_.end()) {
        throw Error(ErrorCode::not_found, "no object has the key: " + std::string(key));
    }
    return read_from(object->second.body, offset, into);
}

std::unique_ptr<ObjectReader> MemoryStore::open(std::string_view key) const {
    require_valid_key(key);
    const std::lock_guard lock(mutex_);
    const auto object = objects_.find(key);
    if (object == objects_.end()) return nullptr;
    return std::make_unique<Reader>(object->second);
}

std::unique_ptr<ObjectWriter> MemoryStore::begin_put(std::string_view key, PutOptions options) {
    require_valid_key(key);
    return std::make_unique<Writer>(*this, std::string(key), options);
}

PutOutcome MemoryStore::publish(const std::string& key, Content content, PutOptions options) {
    const std::lock_guard lock(mutex_);
    if (options.only_if_absent && objects_.contains(key)) return PutOutcome::precondition_failed;
    ObjectInfo info{.key = key,
                    .bytes = content.body.size(),
                    .etag = std::to_string(++version_),
                    .modified = clock_.now(),
                    .attributes = std::move(content.attributes)};
    objects_[key] = {.body = std::move(content.body), .info = std::move(info)};
    return PutOutcome::written;
}

ListPage MemoryStore::list(const ListRequest& request) const {
    ListPage page;
    if (request.keys_max == 0) return page;
    const std::lock_guard lock(mutex_);
    auto object = request.after >= request.prefix ? objects_.upper_bound(request.after)
                                                  : objects_.lower_bound(request.prefix);
    for (; object != objects_.end() && object->first.starts_with(request.prefix); ++object) {
        const std::string& key = object->first;
        const std::size_t slash =
            request.rolls_up ? key.find('/', request.prefix.size()) : std::string::npos;
        const std::string rolled = slash == std::string::npos ? "" : key.substr(0, slash + 1);
        if (!rolled.empty() && !page.prefixes.empty() && page.prefixes.back() == rolled) continue;
        if (page.objects.size() + page.prefixes.size() == request.keys_max) {
            page.truncated = true;
            break;
        }
        if (rolled.empty()) {
            page.objects.push_back(object->second.info);
        } else {
            page.prefixes.push_back(rolled);
        }
    }
    return page;
}

void MemoryStore::remove(std::string_view key) {
    require_valid_key(key);
    const std::lock_guard lock(mutex_);
    const auto object = objects_.find(key);
    if (object != objects_.end()) objects_.erase(object);
}

}  // namespace gruca::store
