#include "data/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string gzip(std::string_view text) {
    z_stream stream = {};
    ::deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string packed(text.size() + 1000, '\0');
    std::string source(text);
    stream.next_in = reinterpret_cast<Bytef*>(source.data());
    stream.avail_in = static_cast<uInt>(source.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(packed.size() - stream.avail_out);
    ::deflateEnd(&stream);
    return packed;
}

class Documents : public testing::Test {
  protected:
    std::vector<std::string> read(const std::string& name, std::string_view content,
                                  const std::string& field = "text") {
        write_file_atomic(dir.path() / name, content);
        std::vector<std::string> documents;
        counts = for_each_document({.path = dir.path() / name, .text_field = field},
                                   [&](std::string_view text) { documents.emplace_back(text); });
        EXPECT_EQ(static_cast<std::size_t>(counts.documents), documents.size());
        return documents;
    }

    Error failure_of(const std::string& name, std::string_view content) {
        const auto failure = run_guarded([&] { read(name, content); });
        EXPECT_TRUE(failure) << name;
        return failure ? *failure : Error(ErrorCode::internal, "none");
    }

    const TempDir dir;
    DocumentCounts counts;
};

TEST_F(Documents, a_text_is_one_document_and_stays_as_it_is) {
    EXPECT_THAT(read("a.txt", "one\r\ntwo\n\n"), ElementsAre("one\r\ntwo\n\n"));
    EXPECT_THAT(read("empty.txt", ""), ElementsAre(""));
    EXPECT_THAT(read("mark.rst", "\xEF\xBB\xBFx"), ElementsAre("x"));
    EXPECT_THAT(read("plain", std::string(300'000, 'x')), ElementsAre(std::string(300'000, 'x')));
}

TEST_F(Documents, bytes_that_are_not_utf8_are_replaced_and_counted) {
    EXPECT_THAT(read("a.txt",
                     "a\xff"
                     "b"),
                ElementsAre("a\uFFFD"
                            "b"));
    EXPECT_EQ(counts.repaired, 1);
    EXPECT_THAT(read("a.jsonl",
                     "{\"text\":\"a\xff"
                     "b\"}\n{\"text\":\"ok\"}"),
                ElementsAre("a\uFFFD"
                            "b",
                            "ok"));
    EXPECT_EQ(counts.repaired, 1);
}

TEST_F(Documents, every_member_of_a_gzip_file_is_read) {
    EXPECT_THAT(read("a.txt.gz", gzip("one ") + gzip("") + gzip("two")), ElementsAre("one two"));
    EXPECT_THAT(read("a.jsonl.gz", gzip("{\"text\":\"one\"}\n") + gzip("{\"text\":\"two\"}\n")),
                ElementsAre("one", "two"));
    const std::string large(1'000'000, 'x');
    EXPECT_THAT(read("b.gz", gzip(large) + gzip("!")), ElementsAre(large + "!"));
}

TEST_F(Documents, a_gzip_file_cut_anywhere_is_damaged_and_named) {
    const std::string packed = gzip("some text that is long enough") + gzip("and more of it");
    const std::size_t first = gzip("some text that is long enough").size();
    for (std::size_t length = 0; length < packed.size(); ++length) {
        if (length == first) continue;  // One whole member.
        const Error failure = failure_of("cut.txt.gz", packed.substr(0, length));
        EXPECT_EQ(failure.code(), ErrorCode::data_loss) << length;
        EXPECT_THAT(failure.message(), HasSubstr("cut.txt.gz"));
    }
}

TEST_F(Documents, a_gzip_file_with_a_wrong_bit_is_damaged) {
    std::string packed = gzip("some text");
    packed[packed.size() - 6] ^= 1;  // In the checksum.
    EXPECT_EQ(failure_of("a.gz", packed).code(), ErrorCode::data_loss);
    EXPECT_EQ(failure_of("b.gz", "no gzip at all").code(), ErrorCode::data_loss);
}

TEST_F(Documents, bytes_after_the_gzip_data_are_ignored) {
    EXPECT_THAT(read("a.gz", gzip("text") + std::string(20, '\0')), ElementsAre("text"));
}

TEST_F(Documents, lines_of_json_are_documents_whatever_ends_them) {
    EXPECT_THAT(read("a.jsonl",
                     "\xEF\xBB\xBF{\"text\":\"a\"}\r\n\n  \r\n{\"id\":1,\"text\":\"\"}\n"
                     "{\"text\":\"last\\n\\u0000\"}"),
                ElementsAre("a", "", std::string("last\n\0", 6)));
    EXPECT_THAT(read("b.jsonl", "{\"body\":\"b\"}\n", "body"), ElementsAre("b"));
    EXPECT_THAT(read("c.jsonl", ""), IsEmpty());
    EXPECT_THAT(read("d.jsonl", "{\"text\":\"first\",\"text\":\"second\"}"), ElementsAre("second"));
}

TEST_F(Documents, a_line_longer_than_any_buffer_is_one_document) {
    const std::string large(3'000'000, 'x');
    EXPECT_THAT(read("a.jsonl", "{\"text\":\"a\"}\n{\"text\":\"" + large + "\"}\n{\"text\":\"b\"}"),
                ElementsAre("a", large, "b"));
}

TEST_F(Documents, surrogate_pairs_combine_and_lone_ones_are_replaced) {
    EXPECT_THAT(read("a.jsonl", R"({"text":"\ud83c\udf78"})"), ElementsAre("\U0001F378"));
    EXPECT_EQ(counts.repaired, 0);
    EXPECT_THAT(read("a.jsonl", R"({"text":"\ud83c x \udf78\uD83Cy\ud83c"})"),
                ElementsAre("\uFFFD x \uFFFD\uFFFDy\uFFFD"));
    EXPECT_EQ(counts.repaired, 1);
    EXPECT_THAT(read("a.jsonl", R"({"text":"\\ud83c"})"), ElementsAre("\\ud83c"));
}

TEST_F(Documents, a_line_that_cannot_be_read_is_named_by_file_and_number) {
    for (const char* bad : {"{\"text\":", "[1]", "{\"other\":\"x\"}", "{\"text\":null}",
                            "{\"text\":7}", "{\"text\":\"raw \t tab\"}", "{\"text\":\"a\"} x"}) {
        const Error failure =
            failure_of("a.jsonl", std::string("{\"text\":\"a\"}\n\n") + bad + "\n{\"text\":\"b\"}");
        EXPECT_EQ(failure.code(), ErrorCode::invalid_argument) << bad;
        EXPECT_THAT(failure.what(), HasSubstr("a.jsonl:3")) << bad;
    }
}

TEST_F(Documents, directories_give_their_files_in_byte_order_and_files_come_as_named) {
    fs::create_directories(dir.path() / "d/sub");
    for (const char* name : {"d/b.txt", "d/a.txt.gz", "d/sub/c.txt", "d/sub.txt", "d/x.png"}) {
        write_file_atomic(dir.path() / name, "x");
    }
    std::vector<std::string> names;
    for (const fs::path& path :
         find_files({dir.path() / "d/x.png", dir.path() / "d"}, {".txt", ".txt.gz"})) {
        names.push_back(fs::relative(path, dir.path()));
    }
    EXPECT_THAT(names, ElementsAre("d/x.png", "d/a.txt.gz", "d/b.txt", "d/sub.txt", "d/sub/c.txt"));
    EXPECT_THROW(find_files({dir.path() / "absent"}, {".txt"}), Error);
    EXPECT_THROW(find_files({dir.path() / "d"}, {".md"}), Error);
}

}  // namespace
}  // namespace gruca::data
