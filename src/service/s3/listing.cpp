#include "service/s3/listing.h"

#include <algorithm>

namespace gruca::service::s3 {
namespace {

// No UTF-8 has this byte: greater than every key that begins with what stands before it.
constexpr char kBeyond = '\xff';
constexpr std::size_t kPieceMin = 8;
constexpr std::size_t kPieceMax = 1000;

class Lister {
  public:
    Lister(const store::ObjectStore& store, const ListQuery& query)
        : store_(store), query_(query), bucket_(query.bucket + "/") {}

    Listing run() {
        if (query_.max == 0) return {};
        after_ = query_.after.empty() ? "" : bucket_ + query_.after;
        // A page that ended with a common prefix has said all of what lies below it.
        const std::string rolled = common_prefix_of(query_.after);
        if (!rolled.empty() && rolled == query_.after) after_ += kBeyond;
        while (!found_.truncated && read_page()) {
        }
        return std::move(found_);
    }

  private:
    // Empty: the key stands for itself.
    std::string common_prefix_of(const std::string& key) const {
        if (query_.delimiter.empty() || !key.starts_with(query_.prefix)) return "";
        const std::size_t end = key.find(query_.delimiter, query_.prefix.size());
        return end == std::string::npos ? "" : key.substr(0, end + query_.delimiter.size());
    }

    bool is_full() const {
        return found_.objects.size() + found_.common_prefixes.size() >= query_.max;
    }

    // False when there is nothing more.
    bool read_page() {
        const std::size_t left =
            query_.max - found_.objects.size() - found_.common_prefixes.size() + 1;
        const bool by_us = !query_.delimiter.empty() && query_.delimiter != "/";
        const store::ListPage page = store_.list({.prefix = bucket_ + query_.prefix,
                                                  .after = after_,
                                                  .keys_max = by_us ? piece_ : left,
                                                  .rolls_up = query_.delimiter == "/"});
        const std::size_t before = found_.objects.size() + found_.common_prefixes.size();
        auto prefix = page.prefixes.begin();
        auto object = page.objects.begin();
        while (prefix != page.prefixes.end() || object != page.objects.end()) {
            const bool is_prefix = prefix != page.prefixes.end() &&
                                   (object == page.objects.end() || *prefix < object->key);
            if (!(is_prefix ? take_prefix(prefix++->substr(bucket_.size())) : take(*object++))) {
                found_.truncated = true;
                return false;
            }
        }
        // Where most keys were rolled up, small looks from prefix to prefix are cheaper.
        const std::size_t taken = found_.objects.size() + found_.common_prefixes.size() - before;
        piece_ = 2 * taken >= page.objects.size() ? std::min(2 * piece_, kPieceMax) : kPieceMin;
        return page.truncated;
    }

    // These two are false when the page is full.
    bool take_prefix(const std::string& prefix) {
        const bool is_again =
            !found_.common_prefixes.empty() && found_.common_prefixes.back() == prefix;
        if (is_again) return true;
        if (is_full()) return false;
        found_.last = prefix;
        found_.common_prefixes.push_back(prefix);
        after_ = bucket_ + prefix + kBeyond;
        return true;
    }

    bool take(store::ObjectInfo info) {
        const std::string key = info.key.substr(bucket_.size());
        const std::string rolled = common_prefix_of(key);
        if (!rolled.empty()) return take_prefix(rolled);
        if (is_full()) return false;
        found_.last = key;
        after_ = info.key;
        info.key = key;
        found_.objects.push_back(std::move(info));
        return true;
    }

    const store::ObjectStore& store_;
    const ListQuery& query_;
    const std::string bucket_;
    std::string after_;
    std::size_t piece_ = kPieceMin;  // Of keys read at once, where they are rolled up here.
    Listing found_;
};

}  // namespace

Listing list_bucket(const store::ObjectStore& store, const ListQuery& query) {
    return Lister(store, query).run();
}

}  // namespace gruca::service::s3
