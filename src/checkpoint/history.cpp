#include <algorithm>
#include <map>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

namespace gruca::checkpoint {
namespace {

// Everything under the prefix that belongs to checkpoints, complete or not.
struct Found {
    bool is_complete = false;
    std::vector<std::string> keys;  // But the manifest's.
};

std::map<std::int64_t, Found, std::greater<>> find_all(const store::ObjectStore& store,
                                                       std::string_view prefix) {
    require_prefix(prefix);
    std::map<std::int64_t, Found, std::greater<>> all;
    store.for_each(std::string(prefix) + "step-", [&](const store::ObjectInfo& info) {
        const auto key = parse_key(prefix, info.key);
        if (!key) return;
        if (key->is_manifest()) {
            all[key->step].is_complete = true;
        } else {
            all[key->step].keys.push_back(info.key);
        }
    });
    return all;
}

}  // namespace

std::vector<std::int64_t> steps(const store::ObjectStore& store, std::string_view prefix) {
    std::vector<std::int64_t> complete;
    for (const auto& [step, found] : find_all(store, prefix)) {
        if (found.is_complete) complete.push_back(step);
    }
    return complete;
}

void prune(store::ObjectStore& store, std::string_view prefix, std::int64_t newest, int keep) {
    CHECK(keep >= 1, "keep {} checkpoints", keep);
    int kept = 0;
    for (const auto& [step, found] : find_all(store, prefix)) {
        if (step > newest) continue;
        if (found.is_complete && kept < keep) {
            ++kept;
            continue;
        }
        if (found.is_complete) store.remove(manifest_key(prefix, step));
        for (const std::string& key : found.keys) store.remove(key);
    }
}

}  // namespace gruca::checkpoint
