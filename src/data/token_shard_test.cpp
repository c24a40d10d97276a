#include "data/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/boundary.h"
#include "base/error.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

using Document = std::vector<std::int32_t>;

void write_shard(const fs::path& prefix, TokenType type, const std::vector<Document>& documents) {
    TokenShardWriter writer(prefix, type);
    for (const Document& document : documents) writer.add_document(document);
    writer.finish();
}

std::vector<Document> read_shard(const fs::path& prefix) {
    const TokenShard shard(prefix);
    std::vector<Document> documents;
    for (std::int64_t i = 0; i < shard.sequences(); ++i) {
        Document document(static_cast<std::size_t>(shard.length(i)));
        shard.read(i, 0, 1 << 30, document);
        documents.push_back(document);
    }
    return documents;
}

std::string message_of(const std::function<void()>& body) {
    const auto failure = run_guarded(body);
    return failure ? failure->what() : "no failure";
}

TEST(TokenShard, what_was_written_is_read_whatever_the_type_and_empty_documents_count) {
    const TempDir dir;
    for (const TokenType type : {TokenType::uint16, TokenType::int32}) {
        for (const std::vector<Document>& documents :
             {std::vector<Document>{}, {{}}, {{}, {1, 2, 3}, {}, {65535}, {}}}) {
            write_shard(dir.path() / "s", type, documents);
            EXPECT_EQ(read_shard(dir.path() / "s"), documents);
            EXPECT_EQ(TokenShard(dir.path() / "s.bin").documents(),
                      static_cast<std::int64_t>(documents.size()));
        }
    }
}

TEST(TokenShard, the_bytes_are_those_of_the_format) {
    const TempDir dir;
    write_shard(dir.path() / "s", TokenType::uint16, {{1, 0x0203}, {4}});
    const std::string index = read_file(dir.path() / "s.idx");
    const std::string expected(
        "MMIDIDX\0\0"
        "\1\0\0\0\0\0\0\0"
        "\10"
        "\2\0\0\0\0\0\0\0"
        "\3\0\0\0\0\0\0\0"
        "\2\0\0\0"
        "\1\0\0\0"
        "\0\0\0\0\0\0\0\0"
        "\4\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0"
        "\1\0\0\0\0\0\0\0"
        "\2\0\0\0\0\0\0\0",
        82);
    EXPECT_EQ(index, expected);
    EXPECT_EQ(read_file(dir.path() / "s.bin"), std::string("\1\0\3\2\4\0", 6));
}

TEST(TokenShard, the_small_type_is_for_vocabularies_below_65500) {
    EXPECT_EQ(token_type_for(65'499), TokenType::uint16);
    EXPECT_EQ(token_type_for(65'500), TokenType::int32);
}

TEST(TokenShard, an_id_that_does_not_fit_is_refused_and_never_wraps) {
    const TempDir dir;
    TokenShardWriter writer(dir.path() / "s", TokenType::uint16);
    EXPECT_THROW(writer.add_document(Document{65'536}), Error);
    EXPECT_THROW(writer.add_document(Document{-1}), Error);
}

TEST(TokenShard, a_merge_equals_what_one_writer_would_have_written) {
    const TempDir dir;
    write_shard(dir.path() / "a", TokenType::uint16, {{1, 2}, {}, {3}});
    write_shard(dir.path() / "b", TokenType::uint16, {{}, {4, 5, 6}});
    write_shard(dir.path() / "whole", TokenType::uint16, {{1, 2}, {}, {3}, {}, {4, 5, 6}});
    TokenShardWriter merged(dir.path() / "merged", TokenType::uint16);
    merged.add_shard(TokenShard(dir.path() / "a"));
    merged.add_shard(TokenShard(dir.path() / "b"));
    merged.finish();
    for (const char* ending : {".bin", ".idx"}) {
        EXPECT_EQ(read_file((dir.path() / "merged").string() + ending),
                  read_file((dir.path() / "whole").string() + ending));
    }
}

TEST(TokenShard, a_writer_without_finish_leaves_nothing_and_keeps_the_old_pair) {
    const TempDir dir;
    write_shard(dir.path() / "s", TokenType::uint16, {{1}});
    {
        TokenShardWriter writer(dir.path() / "s", TokenType::uint16);
        writer.add_document(Document(600'000, 7));
    }
    EXPECT_THAT(read_shard(dir.path() / "s"), ElementsAre(Document{1}));
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 2);
}

TEST(TokenShard, a_document_larger_than_the_buffer_is_whole) {
    const TempDir dir;
    Document large(1'500'000);
    std::iota(large.begin(), large.end(), 0);
    write_shard(dir.path() / "s", TokenType::int32, {{9}, large, {8}});
    EXPECT_EQ(read_shard(dir.path() / "s"), (std::vector<Document>{{9}, large, {8}}));
}

TEST(TokenShard, a_full_disk_is_reported_with_the_file_and_leaves_nothing) {
    const TempDir dir;
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{.rlim_cur = 1u << 20, .rlim_max = before.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    // Past the buffer in one piece, and through it in many.
    for (const std::size_t tokens : {1'500'000u, 1000u}) {
        const std::string message = message_of([&] {
            TokenShardWriter writer(dir.path() / "s", TokenType::int32);
            for (int i = 0; i < 1000; ++i) writer.add_document(Document(tokens));
        });
        EXPECT_THAT(message, HasSubstr("s.bin"));
        EXPECT_TRUE(fs::is_empty(dir.path()));
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
}

TEST(TokenShard, an_id_outside_the_vocabulary_is_named_with_its_place) {
    const TempDir dir;
    write_shard(dir.path() / "s", TokenType::uint16, {{1, 2}, {3, 100, 5}});
    const TokenShard shard(dir.path() / "s");
    Document into(2);
    shard.read(1, 0, 101, into);
    EXPECT_THAT(into, ElementsAre(3, 100));
    const std::string message = message_of([&] { shard.read(1, 1, 100, into); });
    EXPECT_THAT(message, HasSubstr("invalid_argument: token 3 of "));
    EXPECT_THAT(message, HasSubstr("s.bin has the id 100, but the vocabulary has only 100 words"));
}

TEST(TokenShard, a_hostile_index_is_data_loss_and_never_read_out_of_bounds) {
    const TempDir dir;
    const fs::path idx = dir.path() / "s.idx";
    write_shard(dir.path() / "s", TokenType::uint16, {{1, 2}, {3}});
    const std::string good = read_file(idx);
    const auto with_number = [&](std::size_t at, auto number) {
        std::string bad = good;
        std::memcpy(bad.data() + at, &number, sizeof number);
        return bad;
    };
    const std::vector<std::string> hostile = {"",
                                              "MMIDIDX",
                                              good.substr(0, 33),
                                              good.substr(0, good.size() - 1),
                                              good + "x",
                                              "X" + good.substr(1),
                                              with_number(9, std::uint64_t{2}),
                                              with_number(17, std::uint8_t{3}),
                                              with_number(18, std::uint64_t{1} << 60),
                                              with_number(18, ~std::uint64_t{0}),
                                              with_number(26, std::uint64_t{0}),
                                              with_number(26, ~std::uint64_t{0}),
                                              with_number(34, std::int32_t{-1}),
                                              with_number(34, std::int32_t{4}),
                                              with_number(42, std::int64_t{1}),
                                              with_number(42, std::int64_t{-2}),
                                              with_number(42, std::int64_t{1} << 62),
                                              with_number(50, std::int64_t{6}),
                                              with_number(58, std::int64_t{1}),
                                              with_number(66, std::int64_t{3}),
                                              with_number(74, std::int64_t{1})};
    for (const std::string& index : hostile) {
        write_file_atomic(idx, index);
        const std::string message = message_of([&] { TokenShard shard(dir.path() / "s"); });
        EXPECT_THAT(message, HasSubstr("data_loss: ")) << hex(bytes_of(index));
        EXPECT_THAT(message, HasSubstr("s.idx"));
    }
    write_file_atomic(idx, good);
    write_file_atomic(dir.path() / "s.bin", "short");
    EXPECT_THAT(message_of([&] { TokenShard shard(dir.path() / "s"); }), HasSubstr("data_loss"));
}

TEST(TokenShard, a_directory_stands_for_its_shards_in_order_of_their_names) {
    const TempDir dir;
    for (const char* name : {"b", "a", "a-2"}) {
        write_shard(dir.path() / name, TokenType::uint16, {{1}});
    }
    std::vector<std::string> names;
    for (const auto& shard : open_shards({dir.path(), dir.path() / "b.idx"})) {
        names.push_back(shard->prefix().filename());
    }
    EXPECT_THAT(names, ElementsAre("a-2", "a", "b", "b"));
}

TEST(TokenShard, a_directory_without_shards_and_a_missing_file_are_named) {
    const TempDir dir;
    EXPECT_THAT(message_of([&] { open_shards({dir.path()}); }), HasSubstr(dir.path().string()));
    EXPECT_THAT(message_of([&] { open_shards({dir.path() / "x.bin"}); }), HasSubstr("x.idx"));
    EXPECT_THAT(message_of([&] { open_shards({}); }), HasSubstr("not_found"));
}

}  // namespace
}  // namespace gruca::data
