#include "net/chunked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace gruca::net {
namespace {

struct Result {
    std::string data = {};
    std::string chunks = {};  // "size;extension|" of each.
    std::string rest = {};    // What was not the body's.
    std::string fault = {};
    bool ended = false;
    Headers trailers = {};
};

// Feeds pieces of `step` bytes.
Result read(std::string_view bytes, std::size_t step) {
    ChunkedReader reader;
    Result result;
    while (!bytes.empty()) {
        std::string_view input = bytes.substr(0, step);
        bytes.remove_prefix(input.size());
        for (bool more = true; more;) {
            switch (reader.next(input)) {
                case ChunkedReader::What::more:
                    EXPECT_TRUE(input.empty());
                    more = false;
                    break;
                case ChunkedReader::What::chunk:
                    result.chunks +=
                        std::to_string(reader.size()) + ";" + std::string(reader.extension()) + "|";
                    break;
                case ChunkedReader::What::data:
                    EXPECT_FALSE(reader.data().empty());
                    result.data += reader.data();
                    break;
                case ChunkedReader::What::end:
                    result.ended = true;
                    result.trailers = reader.trailers();
                    result.rest = std::string(input) + std::string(bytes);
                    return result;
                case ChunkedReader::What::malformed:
                    result.fault = reader.fault();
                    EXPECT_FALSE(result.fault.empty());
                    EXPECT_EQ(reader.next(input), ChunkedReader::What::malformed);
                    return result;
            }
        }
    }
    return result;
}

TEST(Chunked, a_body_reads_alike_in_pieces_of_any_length) {
    const std::string body =
        "3\r\nabc\r\nA;sig=1\r\n0123456789\r\n0;sig=2\r\nX-One: 1\r\nx-two:two \r\n\r\nGET /";
    for (std::size_t step = 1; step <= body.size(); ++step) {
        const Result result = read(body, step);
        EXPECT_TRUE(result.ended) << step;
        EXPECT_EQ(result.data, "abc0123456789") << step;
        EXPECT_EQ(result.chunks, "3;|10;sig=1|0;sig=2|") << step;
        EXPECT_EQ(result.trailers.find("X-One"), "1");
        EXPECT_EQ(result.trailers.find("X-Two"), "two");
        EXPECT_EQ(result.rest, "GET /") << step;
    }
}

TEST(Chunked, a_body_cut_off_anywhere_has_not_ended) {
    const std::string body = "3\r\nabc\r\n0\r\nX: 1\r\n\r\n";
    for (std::size_t length = 0; length < body.size(); ++length) {
        const Result result = read(body.substr(0, length), 3);
        EXPECT_FALSE(result.ended) << length;
        EXPECT_EQ(result.fault, "") << length;
    }
}

TEST(Chunked, what_is_not_strictly_chunked_is_malformed) {
    for (const std::string& body : std::vector<std::string>{"3\nabc\r\n0\r\n\r\n",
                                                            "3\r\nabc\n0\r\n\r\n",
                                                            "3\r\nabcd\r\n0\r\n\r\n",
                                                            "3\r\nab\r\n\r\n0\r\n\r\n",
                                                            " 3\r\nabc\r\n",
                                                            "3 \r\nabc\r\n",
                                                            "+3\r\nabc\r\n",
                                                            "-3\r\nabc\r\n",
                                                            "0x3\r\nabc\r\n",
                                                            "\r\nabc\r\n",
                                                            ";x\r\n",
                                                            "g\r\n",
                                                            "ffffffffffffffff\r\n",
                                                            "10000000000000003\r\nabc\r\n",
                                                            "00000000000000003\r\nabc\r\n",
                                                            "3\rabc\r\n",
                                                            "0\r\nno colon\r\n\r\n",
                                                            "0\r\n: x\r\n\r\n",
                                                            "0\r\nbad name: x\r\n\r\n",
                                                            "0\r\n folded: x\r\n\r\n",
                                                            std::string("3;a\0b\r\nabc\r\n", 13)}) {
        const Result whole = read(body, body.size());
        EXPECT_NE(whole.fault, "") << body;
        EXPECT_NE(read(body, 1).fault, "") << body;
    }
}

TEST(Chunked, lines_trailers_and_framing_have_limits) {
    EXPECT_NE(read("3;" + std::string(kChunkLineBytesMax, 'x'), 100).fault, "");
    EXPECT_NE(read("0\r\nX: " + std::string(kChunkLineBytesMax, 'x'), 100).fault, "");
    std::string trailers = "0\r\n";
    for (std::size_t i = 0; i <= kTrailersMax; ++i) trailers += "X: 1\r\n";
    EXPECT_NE(read(trailers + "\r\n", 100).fault, "");
    // One byte a chunk, each with a long extension.
    const std::string chunk = "1;" + std::string(1000, 'x') + "\r\na\r\n";
    std::string flood;
    while (flood.size() < 2 * kChunkFramingBytesMax) flood += chunk;
    EXPECT_NE(read(flood, 65536).fault, "");
}

}  // namespace
}  // namespace gruca::net
