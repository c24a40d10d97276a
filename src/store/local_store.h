// store/local_store.h
//
// An object store in a directory. Ordinary keys have readable names ("bucket.d/run.d/part-0"), and
// every legal key has exactly one; docs/formats/local-store.md has the rule.
//
// The subtree of a key prefix that ends in '/' is a directory of its own: bound to another place
// and opened there as a LocalStore, it shows the same objects without the prefix. Temporary files
// lie beside their target inside that subtree.
//
// Symbolic links and special files under the root are never followed, opened or listed: whoever may
// write into a subtree cannot make a reader leave it.
//
// Thread-safe; any number of processes may use one directory at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "store/object_store.h"

namespace gruca::store {

class LocalStore final : public ObjectStore {
  public:
    // Makes `root` when it is absent. Removes what writers that died more than a day before `now`
    // have left; the tree is searched for that at most once a day.
    LocalStore(const std::filesystem::path& root, TimePoint now);
    explicit LocalStore(const std::filesystem::path& root);

    // The directory that holds exactly the objects whose keys begin with `prefix`, made when
    // absent, and kept from then on even when it is empty. `prefix` is empty or ends in '/'.
    std::filesystem::path directory_for(std::string_view prefix);

    // A directory in the root: the first segment of keys.
    struct TopDirectory {
        std::string name;  // Of the segment, without a '/'.
        TimePoint created = {};
    };
    std::vector<TopDirectory> top_directories() const;  // In byte order.
    bool has_directory(std::string_view prefix) const;

    std::optional<ObjectInfo> find(std::string_view key) const override;
    std::size_t read(std::string_view key, std::uint64_t offset,
                     std::span<std::byte> into) const override;
    std::unique_ptr<ObjectReader> open(std::string_view key) const override;
    std::unique_ptr<ObjectWriter> begin_put(std::string_view key, PutOptions options) override;
    ListPage list(const ListRequest& request) const override;
    void remove(std::string_view key) override;
    bool remove_directory(std::string_view prefix) override;

  private:
    const std::filesystem::path root_;
    UniqueFd root_fd_;
};

}  // namespace gruca::store
