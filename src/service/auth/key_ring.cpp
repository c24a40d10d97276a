#include "service/auth/key_ring.h"

#include <algorithm>
#include <mutex>

namespace gruca::service {
namespace {

constexpr std::string_view kAccessKeyLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::string_view kSecretLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kSecretLength = 40;
constexpr std::size_t kSessionTokenLength = 64;

}  // namespace

KeyRing::KeyRing(const std::vector<KeyRecord>& keys) {
    for (const KeyRecord& key : keys) put(key);
}

std::optional<KeyRecord> KeyRing::find(const std::string& access_key) const {
    const std::shared_lock lock(mutex_);
    const auto found = by_access_key_.find(access_key);
    if (found == by_access_key_.end()) return std::nullopt;
    return found->second;
}

std::optional<KeyRecord> KeyRing::find_of(const KeyOwner& owner) const {
    const std::shared_lock lock(mutex_);
    const auto [begin, end] = by_owner_.equal_range({owner.kind, owner.owner});
    if (begin == end) return std::nullopt;
    const auto first = std::min_element(
        begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    return by_access_key_.at(first->second);
}

void KeyRing::put(const KeyRecord& key) {
    const std::lock_guard lock(mutex_);
    if (by_access_key_.insert_or_assign(key.access_key, key).second) {
        by_owner_.emplace(std::pair(key.kind, key.owner), key.access_key);
    }
}

void KeyRing::forget(const KeyOwner& owner) {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = by_owner_.equal_range({owner.kind, owner.owner});
    for (auto it = begin; it != end; ++it) by_access_key_.erase(it->second);
    by_owner_.erase(begin, end);
}

KeyRecord make_key(Random& random, KeyKind kind, const std::string& owner) {
    const bool temporary = kind == KeyKind::job;
    return {.access_key = (temporary ? "ASIA" : "AKIA") + random.word(16, kAccessKeyLetters),
            .secret_key = random.word(kSecretLength, kSecretLetters),
            .kind = kind,
            .owner = owner,
            .session_token =
                temporary ? random.word(kSessionTokenLength, kSecretLetters) : std::string()};
}

}  // namespace gruca::service
