// service/auth/key_ring.h
//
// Every access key the service accepts, in memory: asked on each request, changed only by the loop
// and after the database holds the change. And the making of new keys.
//
// Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "service/state/database.h"

namespace gruca::service {

class KeyRing {
  public:
    explicit KeyRing(const std::vector<KeyRecord>& keys);

    std::optional<KeyRecord> find(const std::string& access_key) const;
    // The key of that owner; the first in the order of access keys, should it have several.
    std::optional<KeyRecord> find_of(const KeyOwner& owner) const;

    void put(const KeyRecord& key);
    void forget(const KeyOwner& owner);

  private:
    mutable std::shared_mutex mutex_;  // Guards both maps.
    std::map<std::string, KeyRecord> by_access_key_;
    std::multimap<std::pair<KeyKind, std::string>, std::string> by_owner_;
};

// Shaped like AWS's: 20 characters and 40, with a session token for a job.
KeyRecord make_key(Random& random, KeyKind kind, const std::string& owner);

}  // namespace gruca::service
