#include "service/s3/listing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "store/memory_store.h"

namespace gruca::service::s3 {
namespace {

struct Pages {
    std::vector<std::string> entries;  // Keys and common prefixes in the order they came.
    int pages = 0;
};

Pages list_all(const store::ObjectStore& store, ListQuery query) {
    Pages result;
    for (bool more = true; more; ++result.pages) {
        const Listing page = list_bucket(store, query);
        std::vector<std::string> entries = page.common_prefixes;
        for (const store::ObjectInfo& info : page.objects) entries.push_back(info.key);
        std::sort(entries.begin(), entries.end());
        EXPECT_LE(entries.size(), query.max);
        result.entries.insert(result.entries.end(), entries.begin(), entries.end());
        more = page.truncated;
        EXPECT_TRUE(!more || (!entries.empty() && page.last == entries.back()));
        query.after = page.last;
    }
    return result;
}

// What S3 says a listing is, by the whole set of keys.
std::vector<std::string> expected(const std::set<std::string>& keys, const ListQuery& query) {
    std::set<std::string> entries;
    for (const std::string& key : keys) {
        if (!key.starts_with(query.prefix)) continue;
        const std::size_t end = query.delimiter.empty()
                                    ? std::string::npos
                                    : key.find(query.delimiter, query.prefix.size());
        entries.insert(end == std::string::npos ? key
                                                : key.substr(0, end + query.delimiter.size()));
    }
    return {entries.begin(), entries.end()};
}

TEST(S3Listing, pages_of_every_length_say_what_the_whole_would) {
    const Philox chance(7, 0);
    std::uint64_t drawn = 0;
    const auto below = [&](std::uint64_t bound) { return chance.below(bound, drawn++); };
    for (int round = 0; round < 200; ++round) {
        store::MemoryStore store;
        std::set<std::string> keys;
        const std::uint64_t count = below(40);
        for (std::uint64_t i = 0; i < count; ++i) {
            std::string key;
            for (std::uint64_t n = 1 + below(5); n > 0; --n) key += "ab/-"[below(4)];
            keys.insert(key);
            store.put("bucket/" + key, "x");
        }
        store.put("bucket2/a", "x");
        store.put("bucket-/a", "x");
        for (const char* delimiter : {"", "/", "a", "b/"}) {
            for (const char* prefix : {"", "a", "a/", "/"}) {
                for (const std::size_t max : {1u, 2u, 3u, 7u, 1000u}) {
                    const ListQuery query{
                        .bucket = "bucket", .prefix = prefix, .delimiter = delimiter, .max = max};
                    EXPECT_EQ(list_all(store, query).entries, expected(keys, query))
                        << "round " << round << " delimiter '" << delimiter << "' prefix '"
                        << prefix << "' max " << max;
                }
            }
        }
    }
}

// Counts how often it is looked at.
class Watched final : public store::ObjectStore {
  public:
    explicit Watched(store::ObjectStore& beneath) : beneath_(beneath) {}

    mutable int looks = 0;

    store::ListPage list(const store::ListRequest& request) const override {
        ++looks;
        return beneath_.list(request);
    }
    std::optional<store::ObjectInfo> find(std::string_view key) const override {
        return beneath_.find(key);
    }
    std::size_t read(std::string_view key, std::uint64_t offset,
                     std::span<std::byte> into) const override {
        return beneath_.read(key, offset, into);
    }
    std::unique_ptr<store::ObjectReader> open(std::string_view key) const override {
        return beneath_.open(key);
    }
    std::unique_ptr<store::ObjectWriter> begin_put(std::string_view key,
                                                   store::PutOptions options) override {
        return beneath_.begin_put(key, options);
    }
    void remove(std::string_view key) override { beneath_.remove(key); }

  private:
    store::ObjectStore& beneath_;
};

TEST(S3Listing, a_page_of_many_prefixes_costs_few_looks_at_the_store) {
    store::MemoryStore memory;
    for (int i = 10'000; i < 12'000; ++i) {
        for (const char* name : {"/a", "/b", "-a", "-b"}) {
            memory.put("bucket/" + std::to_string(i) + name, "x");
        }
    }
    Watched store(memory);
    EXPECT_EQ(list_bucket(store, {.bucket = "bucket", .delimiter = "/"}).common_prefixes.size(),
              333u);  // Of three entries one is a prefix.
    EXPECT_EQ(store.looks, 1);
    store.looks = 0;
    const Listing page = list_bucket(store, {.bucket = "bucket", .delimiter = "-"});
    EXPECT_EQ(page.common_prefixes.size() + page.objects.size(), 1000u);
    EXPECT_LE(store.looks, 12);
}

TEST(S3Listing, a_page_of_nothing_is_not_truncated) {
    store::MemoryStore store;
    store.put("bucket/a", "x");
    EXPECT_FALSE(list_bucket(store, {.bucket = "bucket", .max = 0}).truncated);
}

TEST(S3Listing, what_lies_below_a_common_prefix_costs_no_page) {
    store::MemoryStore store;
    for (int i = 0; i < 3000; ++i) store.put("bucket/deep/" + std::to_string(i), "x");
    store.put("bucket/z", "x");
    const Listing page = list_bucket(store, {.bucket = "bucket", .delimiter = "/", .max = 2});
    EXPECT_EQ(page.common_prefixes, std::vector<std::string>{"deep/"});
    EXPECT_EQ(page.objects.at(0).key, "z");
    EXPECT_FALSE(page.truncated);
}

TEST(S3Listing, a_marker_within_a_common_prefix_still_finds_what_comes_after) {
    store::MemoryStore store;
    for (const char* key : {"a/1", "a/2", "b"}) store.put(std::string("bucket/") + key, "x");
    const Listing page = list_bucket(store, {.bucket = "bucket", .delimiter = "/", .after = "a/1"});
    EXPECT_EQ(page.common_prefixes, std::vector<std::string>{"a/"});
    EXPECT_EQ(page.objects.size(), 1u);
}

}  // namespace
}  // namespace gruca::service::s3
