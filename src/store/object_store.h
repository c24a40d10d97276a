// store/object_store.h
//
// The one door through which bytes that outlive a process come and go: datasets, token shards,
// checkpoints, model artifacts. Everything above this room names bytes by key and never knows
// whether they lie in a directory or in S3.
//
//   LocalStore    a directory, for one machine or a shared file system
//   MemoryStore   tests
//   FaultyStore   wraps another store and fails on command; tests
//
// Every implementation keeps these promises, and object_store_test.cpp holds each to them:
//   * A put is atomic and durable: a reader sees the whole old object or the whole new one, and
//     after the put has returned also after a power cut.
//   * After a put returns, find, read and list see it, from any process.
//   * remove of an absent key succeeds, as in S3.
//   * A key is 1..1088 bytes of UTF-8, any of them, as in S3: "a" beside "a/b", "a//b", "a/" and
//     ".." are different, ordinary keys. Anything else throws invalid_argument.
//   * Attributes belong to one version of an object: a put without any leaves none.
//   * Bodies stream: no operation holds more than a few MiB.
//
// Buckets are the first segment of a key: "bucket/key". A store opened below a prefix (LocalStore
// below its directory) sees the same keys without that prefix.
//
// Thread-safe. Calls block until the operation is durable or has failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace gruca::store {

inline constexpr std::size_t kKeyBytesMax = 1024 + 64;    // S3's, behind "bucket/".
inline constexpr std::size_t kAttributesBytesMax = 3500;  // What ext4 keeps beside a file.

struct ObjectInfo {
    std::string key;
    std::uint64_t bytes = 0;
    std::string etag = {};  // Opaque. Equal etags of one key mean equal content.
    TimePoint modified = {};
    std::string attributes = {};  // What its writer put beside it; mostly nothing.
};

struct PutOptions {
    // Write only if no object has this key. This is how a manifest is published exactly once.
    bool only_if_absent = false;
};

enum class PutOutcome { written, precondition_failed };

struct ListRequest {
    std::string prefix = {};
    std::string after = {};  // Only keys greater than this one; empty: from the start.
    std::size_t keys_max = 1000;
    // All keys that are the same up to a '/' behind the prefix count as one, which is given as a
    // prefix: the store does not look at each.
    bool rolls_up = false;
};

struct ListPage {
    std::vector<ObjectInfo> objects;         // In byte order of their keys.
    std::vector<std::string> prefixes = {};  // Likewise; below each is a key greater than `after`.
    bool truncated = false;  // Ask again with `after` set to the last key, or behind a prefix.
};

// One version of an object, whole, whatever becomes of its key meanwhile. Owned by one thread.
class ObjectReader {
  public:
    virtual ~ObjectReader() = default;
    virtual const ObjectInfo& info() const = 0;
    // As ObjectStore::read.
    virtual std::size_t read(std::uint64_t offset, std::span<std::byte> into) const = 0;
    // The file that is the body, for sendfile and the like; -1 where there is none.
    virtual int fd() const { return -1; }
};

// An object on its way in. Nothing is visible until commit; destroyed without it, nothing happened.
// Owned by one thread.
class ObjectWriter {
  public:
    virtual ~ObjectWriter() = default;
    virtual void write(std::span<const std::byte> bytes) = 0;
    // Appends a range of another object; fewer copies than reading and writing where both are
    // files. Throws data_loss when the range is not all there.
    virtual void append(const ObjectReader& from, std::uint64_t offset, std::uint64_t bytes) = 0;
    // To become visible with the body, in the same instant. False when this store cannot keep them
    // (a file system without extended attributes). At most kAttributesBytesMax bytes.
    [[nodiscard]] virtual bool set_attributes(std::string_view attributes) = 0;
    // Does now what of commit takes long: brings to the disk what was written so far. For who holds
    // a lock while committing, and not for less. Writing may go on.
    virtual void flush() {}
    virtual PutOutcome commit() = 0;  // Once. The object is durable when this returns.
};

class ObjectStore {
  public:
    virtual ~ObjectStore() = default;

    // The quiet twin of read: an absent key is an outcome here, a not_found failure there.
    virtual std::optional<ObjectInfo> find(std::string_view key) const = 0;

    // Fills `into` from `offset` and returns the bytes read, fewer only at the object's end.
    virtual std::size_t read(std::string_view key, std::uint64_t offset,
                             std::span<std::byte> into) const = 0;

    virtual std::unique_ptr<ObjectReader> open(
        std::string_view key) const = 0;  // Null when absent.

    virtual std::unique_ptr<ObjectWriter> begin_put(std::string_view key, PutOptions options) = 0;

    virtual ListPage list(const ListRequest& request) const = 0;

    virtual void remove(std::string_view key) = 0;

    // Removes what a store keeps beside objects under `prefix`, which ends in '/': directories,
    // kept ones too. False when an object lies there.
    virtual bool remove_directory(std::string_view prefix);

    // Whole small objects, built on the above.
    PutOutcome put(std::string_view key, std::span<const std::byte> body, PutOptions options = {});
    PutOutcome put(std::string_view key, std::string_view body, PutOptions options = {});
    // Throws not_found when absent, resource_exhausted above bytes_max, unavailable when the object
    // is replaced again and again while being read.
    std::string get(std::string_view key, std::uint64_t bytes_max = 64u << 20) const;
    // Every object under `prefix`, page by page, in key order.
    void for_each(std::string_view prefix,
                  const std::function<void(const ObjectInfo&)>& visit) const;
};

// ObjectWriter::append for a writer that knows no better way.
void append_by_reading(ObjectWriter& to, const ObjectReader& from, std::uint64_t offset,
                       std::uint64_t bytes);

// Throws invalid_argument unless `key` obeys the rule above. Every implementation calls it first.
void require_valid_key(std::string_view key);

// "file:///dir" opens a LocalStore on that directory, which is made when absent; "%20" and the like
// stand for their byte. Throws invalid_argument, naming the URI, for any other form or scheme.
std::unique_ptr<ObjectStore> open_store(std::string_view uri);

// The "file://" URI of an absolute directory: open_store opens it.
std::string file_uri(const std::filesystem::path& directory);

}  // namespace gruca::store
