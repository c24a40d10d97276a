#include "service/s3/listing.h"

#include <algorithm>

namespace gruca::service::s3 {
namespace {

// No UTF-8 has this byte: greater than every key that begins with what stands before it.
constexpr char kBeyond = '\xff';
constexpr std::size_t kPieceMin = 8;

class Lister {
  public:
    Lister(const store::ObjectStore& store, const ListQuery& query)
        : store_(store), query_(query), bucket_(query.bucket + "/") {}

    Listing run() {
        if (query_.max == 0) return {};
        after_ = query_.after.empty() ? "" : bucket_ + query_.after;
        // A page that ended with a common prefix has said all of what lies below it.
        if (const auto rolled = common_prefix_of(query_.after); rolled == query_.after)
            skip(rolled);
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

    void skip(const std::string& common_prefix) {
        if (!common_prefix.empty()) after_ = bucket_ + common_prefix + kBeyond;
    }

    bool is_full() const {
        return found_.objects.size() + found_.common_prefixes.size() >= query_.max;
    }

    // False when there is nothing more.
    bool read_page() {
        const std::size_t left =
            query_.max - found_.objects.size() - found_.common_prefixes.size() + 1;
        const std::size_t wanted = query_.delimiter.empty() ? left : std::min(left, piece_);
        piece_ *= 2;
        const store::ListPage page =
            store_.list({.prefix = bucket_ + query_.prefix, .after = after_, .keys_max = wanted});
        for (const store::ObjectInfo& one : page.objects) {
            store::ObjectInfo info = one;
            info.key.erase(0, bucket_.size());
            const std::string rolled = common_prefix_of(info.key);
            if (is_full()) {
                found_.truncated = true;
                return false;
            }
            found_.last = rolled.empty() ? info.key : rolled;
            if (!rolled.empty()) {
                found_.common_prefixes.push_back(rolled);
                skip(rolled);
                piece_ = kPieceMin;
                return true;  // From behind it on, by another look at the store.
            }
            after_ = one.key;
            found_.objects.push_back(std::move(info));
        }
        return page.truncated;
    }

    const store::ObjectStore& store_;
    const ListQuery& query_;
    const std::string bucket_;
    std::string after_;
    std::size_t piece_ = kPieceMin;  // Of keys read at once, where most may be rolled up.
    Listing found_;
};

}  // namespace

Listing list_bucket(const store::ObjectStore& store, const ListQuery& query) {
    return Lister(store, query).run();
}

}  // namespace gruca::service::s3
