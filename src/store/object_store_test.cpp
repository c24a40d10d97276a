// The promises of store/object_store.h, held against every implementation; then one thing built on
// them, a checkpoint that is published last, held against every possible write failure.
#include "store/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/boundary.h"
#include "base/error.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "store/faulty_store.h"
#include "store/local_store.h"
#include "store/memory_store.h"

namespace gruca::store {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

// A store that needs another one beneath it owns it here.
struct Opened {
    std::unique_ptr<ObjectStore> beneath;
    std::unique_ptr<ObjectStore> store;
};

struct Implementation {
    std::string name;
    std::function<Opened(const std::filesystem::path& scratch)> make;
};

class ObjectStoreContract : public testing::TestWithParam<Implementation> {
  protected:
    std::vector<std::string> keys(const ListRequest& request = {}) const {
        std::vector<std::string> found;
        for (const ObjectInfo& info : store.list(request).objects) found.push_back(info.key);
        return found;
    }

    const TempDir scratch;
    const Opened opened = GetParam().make(scratch.path());
    ObjectStore& store = *opened.store;
};

// Keys that are easily confused with each other or with something of a file system, in order.
std::vector<std::string> awkward_keys() {
    std::vector<std::string> keys = {std::string("\0", 1),
                                     "\n",
                                     " ",
                                     "%",
                                     "%2E",
                                     "%41",
                                     ".",
                                     "..",
                                     "../a",
                                     ".keep",
                                     ".swept",
                                     ".tmp-0123456789abcdef",
                                     "/",
                                     "//",
                                     "/a",
                                     "A",
                                     "a",
                                     "a b",
                                     "a+b",
                                     "a-",
                                     "a.d",
                                     "a.d.d",
                                     "a.d/b",
                                     "a.more",
                                     "a.more.d",
                                     "a/",
                                     "a/.",
                                     "a/../b",
                                     "a//",
                                     "a//b",
                                     "a/b",
                                     "a/b/c",
                                     "a0",
                                     "a\\b",
                                     "con",
                                     "e\u0301",
                                     "\u00e9",
                                     "\uffff",
                                     "\U0010ffff"};
    // Around the length at which a name is cut, and with every kind of neighbour there.
    for (const std::size_t length : {239u, 240u, 241u, 255u, 256u, 480u, 481u, 1000u}) {
        const std::string long_name(length, 'x');
        for (const char* tail : {"", "-", "/", "/y", ".d", ".more", "y", "%", "\u00e9"}) {
            keys.push_back(long_name + tail);
        }
    }
    keys.push_back(std::string(50, '/'));
    keys.push_back(std::string(kKeyBytesMax, '%'));
    keys.push_back(std::string(kKeyBytesMax, '.'));
    std::sort(keys.begin(), keys.end());
    return keys;
}

TEST_P(ObjectStoreContract, a_put_replaces_the_whole_object) {
    store.put("a", "a long first version");
    store.put("a", "short");
    EXPECT_EQ(store.get("a"), "short");
    EXPECT_EQ(store.find("a")->bytes, 5u);
}

TEST_P(ObjectStoreContract, attributes_appear_and_go_with_their_version) {
    const auto writer = store.begin_put("dir/a", {});
    writer->write(bytes_of("body"));
    ASSERT_TRUE(writer->set_attributes("{\"x\":1}"));
    EXPECT_FALSE(store.find("dir/a"));
    writer->commit();
    EXPECT_EQ(store.find("dir/a")->attributes, "{\"x\":1}");
    EXPECT_EQ(store.list({}).objects.at(0).attributes, "{\"x\":1}");
    EXPECT_EQ(store.open("dir/a")->info().attributes, "{\"x\":1}");
    store.put("dir/a", "other");
    EXPECT_EQ(store.find("dir/a")->attributes, "");
}

TEST_P(ObjectStoreContract, a_reader_keeps_its_version_when_the_key_is_replaced_or_removed) {
    EXPECT_EQ(store.open("a"), nullptr);
    store.put("a", "0123456789");
    const auto reader = store.open("a");
    store.put("a", "new");
    store.remove("a");
    EXPECT_EQ(reader->info().bytes, 10u);
    std::string into(20, ' ');
    EXPECT_EQ(reader->read(4, std::as_writable_bytes(std::span(into))), 6u);
    EXPECT_EQ(into.substr(0, 6), "456789");
    EXPECT_EQ(reader->read(10, std::as_writable_bytes(std::span(into))), 0u);
}

TEST_P(ObjectStoreContract, ranges_of_other_objects_are_appended) {
    store.put("a", "0123456789");
    store.put("b", "abc");
    const auto a = store.open("a"), b = store.open("b");
    const auto writer = store.begin_put("c", {});
    writer->append(*a, 2, 5);
    writer->write(bytes_of("-"));
    writer->append(*b, 0, 3);
    writer->append(*b, 3, 0);
    EXPECT_THROW(writer->append(*b, 1, 3), Error);
    const auto again = store.begin_put("c", {});
    again->append(*a, 2, 5);
    again->write(bytes_of("-"));
    again->append(*b, 0, 3);
    again->commit();
    EXPECT_EQ(store.get("c"), "23456-abc");
}

TEST_P(ObjectStoreContract, nothing_is_visible_before_commit_or_without_it) {
    {
        const auto writer = store.begin_put("dir/a", {});
        writer->write(bytes_of("half"));
        EXPECT_FALSE(store.find("dir/a"));
        EXPECT_THAT(keys(), IsEmpty());
    }
    EXPECT_FALSE(store.find("dir/a"));
    EXPECT_THAT(keys(), IsEmpty());
}

TEST_P(ObjectStoreContract, a_body_arrives_in_pieces_and_is_read_from_any_offset) {
    const auto writer = store.begin_put("a", {});
    for (const char* piece : {"01", "", "2345", "6789"}) writer->write(bytes_of(piece));
    EXPECT_EQ(writer->commit(), PutOutcome::written);
    std::string into(4, ' ');
    const auto bytes = std::as_writable_bytes(std::span(into));
    EXPECT_EQ(store.read("a", 3, bytes), 4u);
    EXPECT_EQ(into, "3456");
    EXPECT_EQ(store.read("a", 8, bytes), 2u);
    EXPECT_EQ(into.substr(0, 2), "89");
    EXPECT_EQ(store.read("a", 10, bytes), 0u);
    EXPECT_EQ(store.read("a", 1'000'000, bytes), 0u);
}

TEST_P(ObjectStoreContract, an_empty_object_is_an_object) {
    store.put("a", "");
    EXPECT_EQ(store.get("a"), "");
    EXPECT_EQ(store.find("a")->bytes, 0u);
}

TEST_P(ObjectStoreContract, an_absent_key_is_an_outcome_of_find_and_a_failure_of_read) {
    store.put("a/b", "x");
    for (const char* key : {"b", "a", "a/", "a/b/c", "a/b/"}) {
        EXPECT_FALSE(store.find(key)) << key;
        try {
            store.get(key);
            FAIL() << key;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::not_found);
        }
        std::byte into{};
        EXPECT_THROW(store.read(key, 0, std::span(&into, 1)), Error) << key;
    }
}

TEST_P(ObjectStoreContract, get_is_bounded) {
    store.put("a", std::string(101, 'x'));
    EXPECT_EQ(store.get("a", 101).size(), 101u);
    try {
        store.get("a", 100);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    }
}

TEST_P(ObjectStoreContract, only_if_absent_lets_exactly_one_writer_win) {
    EXPECT_EQ(store.put("m", "first", {.only_if_absent = true}), PutOutcome::written);
    EXPECT_EQ(store.put("m", "second", {.only_if_absent = true}), PutOutcome::precondition_failed);
    EXPECT_EQ(store.get("m"), "first");
    std::atomic<int> winners = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&, i] {
                const std::string body = std::to_string(i);
                winners += store.put("race", body, {.only_if_absent = true}) == PutOutcome::written;
            });
        }
    }
    EXPECT_EQ(winners, 1);
    EXPECT_THAT(keys(), ElementsAre("m", "race"));
}

TEST_P(ObjectStoreContract, an_etag_changes_with_every_put) {
    std::vector<std::string> etags;
    for (int i = 0; i < 50; ++i) {
        store.put("a", std::to_string(i % 10));
        etags.push_back(store.find("a")->etag);
    }
    std::sort(etags.begin(), etags.end());
    EXPECT_EQ(std::unique(etags.begin(), etags.end()), etags.end());
    EXPECT_EQ(store.find("a")->etag, store.list({}).objects.at(0).etag);
}

TEST_P(ObjectStoreContract, remove_takes_one_object_and_an_absent_key_is_no_failure) {
    for (const char* key : {"a", "a/b", "a/b/c"}) store.put(key, key);
    store.remove("a/b");
    store.remove("a/b");
    store.remove("a/x/y");
    EXPECT_THAT(keys(), ElementsAre("a", "a/b/c"));
    store.remove("a/b/c");
    store.remove("a");
    EXPECT_THAT(keys(), IsEmpty());
}

TEST_P(ObjectStoreContract, awkward_keys_are_kept_faithfully_and_listed_in_byte_order) {
    const std::vector<std::string> all = awkward_keys();
    for (const std::string& key : all) store.put(key, "body of " + key);
    EXPECT_THAT(keys(), ElementsAreArray(all));
    for (const std::string& key : all) {
        EXPECT_EQ(store.get(key), "body of " + key);
        EXPECT_EQ(store.find(key)->key, key);
    }
    for (std::size_t i = 0; i < all.size(); i += 2) store.remove(all[i]);
    std::vector<std::string> left;
    for (std::size_t i = 1; i < all.size(); i += 2) left.push_back(all[i]);
    EXPECT_THAT(keys(), ElementsAreArray(left));
}

TEST_P(ObjectStoreContract, list_gives_the_same_keys_whatever_the_prefix_page_and_start) {
    const std::vector<std::string> all = awkward_keys();
    for (const std::string& key : all) store.put(key, "x");
    for (const std::size_t keys_max : {1u, 7u}) {
        std::vector<std::string> paged;
        ListRequest request{.keys_max = keys_max};
        for (bool more = true; more;) {
            const ListPage page = store.list(request);
            EXPECT_LE(page.objects.size(), keys_max);
            for (const ObjectInfo& info : page.objects) paged.push_back(info.key);
            more = page.truncated;
            if (more) request.after = paged.back();
        }
        EXPECT_THAT(paged, ElementsAreArray(all)) << keys_max;
    }
    std::vector<std::string> prefixes = all;
    prefixes.insert(prefixes.end(), {"", "a/b/", "z", std::string(300, 'x')});
    for (const std::string& prefix : prefixes) {
        for (const std::string& after : {std::string(), std::string("a/"), prefix, prefix + "/"}) {
            std::vector<std::string> expected;
            std::copy_if(all.begin(), all.end(), std::back_inserter(expected),
                         [&](const auto& key) { return key.starts_with(prefix) && key > after; });
            EXPECT_THAT(keys({.prefix = prefix, .after = after}), ElementsAreArray(expected))
                << "prefix '" << prefix << "' after '" << after << "'";
        }
    }
}

// What a page that rolls up has to say, by the whole set of keys.
std::vector<std::string> rolled_up(const std::vector<std::string>& all,
                                   const ListRequest& request) {
    std::vector<std::string> entries;
    for (const std::string& key : all) {
        if (!key.starts_with(request.prefix) || key <= request.after) continue;
        const std::size_t slash = key.find('/', request.prefix.size());
        const std::string entry = slash == std::string::npos ? key : key.substr(0, slash + 1);
        if (entries.empty() || entries.back() != entry) entries.push_back(entry);
    }
    return entries;
}

TEST_P(ObjectStoreContract, a_page_that_rolls_up_gives_each_prefix_once) {
    const std::vector<std::string> all = awkward_keys();
    for (const std::string& key : all) store.put(key, "x");
    std::vector<std::string> prefixes = all;
    prefixes.insert(prefixes.end(), {"", "a/b/", "z", std::string(300, 'x')});
    for (const std::string& prefix : prefixes) {
        for (const std::string& after :
             {std::string(), std::string("a/"), prefix, prefix + "/\xff"}) {
            for (const std::size_t keys_max : {1u, 3u, 1000u}) {
                ListRequest request{
                    .prefix = prefix, .after = after, .keys_max = keys_max, .rolls_up = true};
                const std::vector<std::string> expected = rolled_up(all, request);
                std::vector<std::string> got;
                for (bool more = true; more;) {
                    const ListPage page = store.list(request);
                    std::vector<std::string> entries = page.prefixes;
                    for (const ObjectInfo& info : page.objects) entries.push_back(info.key);
                    std::sort(entries.begin(), entries.end());
                    EXPECT_LE(entries.size(), keys_max);
                    got.insert(got.end(), entries.begin(), entries.end());
                    more = page.truncated;
                    if (!more) break;
                    const bool is_prefix =
                        !page.prefixes.empty() && page.prefixes.back() == got.back();
                    request.after = got.back() + (is_prefix ? "\xff" : "");
                }
                EXPECT_THAT(got, ElementsAreArray(expected))
                    << "prefix '" << prefix << "' after '" << after << "' max " << keys_max;
            }
        }
    }
}

TEST_P(ObjectStoreContract, a_page_that_ends_with_the_last_key_is_not_truncated) {
    for (const char* key : {"a/1", "a/2", "b"}) store.put(key, "x");
    EXPECT_FALSE(store.list({.keys_max = 3}).truncated);
    EXPECT_TRUE(store.list({.keys_max = 2}).truncated);
    EXPECT_FALSE(store.list({.prefix = "a/", .keys_max = 2}).truncated);
    EXPECT_THAT(store.list({.keys_max = 0}).objects, IsEmpty());
}

TEST_P(ObjectStoreContract, keys_outside_the_rule_are_refused_everywhere) {
    for (const std::string& key :
         {std::string(), std::string(kKeyBytesMax + 1, 'a'), std::string("\xff"),
          std::string("a\xc0\xaf"), std::string("\xed\xa0\x80")}) {
        EXPECT_THROW(store.put(key, "x"), Error);
        EXPECT_THROW(store.find(key), Error);
        EXPECT_THROW(store.remove(key), Error);
        EXPECT_THROW(store.read(key, 0, {}), Error);
    }
    EXPECT_THAT(keys(), IsEmpty());
}

TEST_P(ObjectStoreContract, a_reader_sees_one_whole_version_while_it_is_replaced) {
    constexpr std::size_t kBytes = 100'000;
    store.put("a", std::string(kBytes, 'a'));
    std::jthread replacer([&](const std::stop_token& stop) {
        for (char c = 'b'; !stop.stop_requested(); c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
            store.put("a", std::string(kBytes - static_cast<std::size_t>(c - 'a'), c));
        }
    });
    for (int i = 0; i < 200; ++i) {
        const std::string body = store.get("a");
        ASSERT_EQ(body.find_first_not_of(body.at(0)), std::string::npos);
        ASSERT_EQ(body.size(), kBytes - static_cast<std::size_t>(body[0] - 'a'));
    }
}

TEST_P(ObjectStoreContract, puts_and_removes_in_one_directory_never_lose_a_put) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            const std::string key = "deep/er/" + std::to_string(i);
            for (int round = 0; round < 50; ++round) {
                store.put(key, "x");
                EXPECT_TRUE(store.find(key));
                store.remove(key);
            }
        });
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, ObjectStoreContract,
    testing::Values(
        Implementation{"local",
                       [](const auto& scratch) {
                           return Opened{{}, std::make_unique<LocalStore>(scratch / "root")};
                       }},
        Implementation{"memory",
                       [](const auto&) {
                           return Opened{{}, std::make_unique<MemoryStore>()};
                       }},
        Implementation{"faulty",
                       [](const auto&) {
                           auto beneath = std::make_unique<MemoryStore>();
                           auto store = std::make_unique<FaultyStore>(*beneath);
                           return Opened{std::move(beneath), std::move(store)};
                       }}),
    [](const auto& instance) { return instance.param.name; });

void save_checkpoint(ObjectStore& store) {
    for (const char* part : {"ckpt/7/part-0", "ckpt/7/part-1", "ckpt/7/part-2"}) {
        store.put(part, "weights");
    }
    store.put("ckpt/7/manifest", "three parts", {.only_if_absent = true});
}

TEST(CheckpointOnObjectStore, a_manifest_never_names_a_missing_part_whatever_write_fails) {
    int failures = 0;
    const int points = for_each_fault_point([&](FaultyStore& store, ObjectStore& beneath) {
        const auto failure = run_guarded([&] { save_checkpoint(store); });
        failures += failure.has_value();
        if (failure) {
            EXPECT_EQ(failure->code(), ErrorCode::unavailable);
        }
        if (!beneath.find("ckpt/7/manifest")) return;
        EXPECT_EQ(beneath.list({.prefix = "ckpt/7/part-"}).objects.size(), 3u);
    });
    EXPECT_EQ(points, 4 * 3 * 3);  // Four puts of begin, write and commit; three kinds of fault.
    EXPECT_EQ(failures, points);
}

TEST(OpenStore, a_file_uri_names_a_directory) {
    const TempDir scratch;
    const auto directory = scratch.path() / "with blank % and \u00e9";
    open_store(file_uri(directory))->put("a", "x");
    EXPECT_EQ(LocalStore(directory).get("a"), "x");
}

TEST(OpenStore, anything_else_is_refused_by_name) {
    for (const char* uri : {"", "s3://bucket", "/tmp/x", "file://host/x", "file:relative",
                            "file:///%", "file:///%0", "file:///%zz", "file:///a%00b"}) {
        try {
            open_store(uri);
            FAIL() << uri;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            EXPECT_TRUE(error.message().ends_with(uri)) << error.message();
        }
    }
}

}  // namespace
}  // namespace gruca::store
