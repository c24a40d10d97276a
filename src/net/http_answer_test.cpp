#include "net/http_answer.h"

#include <gtest/gtest.h>

#include "base/boundary.h"
#include "base/error.h"
#include "base/text.h"

namespace gruca::net {
namespace {

struct Seen {
    std::optional<ErrorCode> failure = {};
    int status = 0;
    std::string body = {};
    bool is_whole = false;
    bool keeps = false;
    std::size_t left = 0;  // Bytes that are not the answer's.

    friend bool operator==(const Seen&, const Seen&) = default;
};

// In pieces of `piece` bytes; after the last one the server closes, if `closes`.
Seen read(std::string_view bytes, std::size_t piece, bool closes, std::string_view method = "GET") {
    Seen seen;
    HttpAnswer answer(method, [&](const HttpResponse&, std::span<const std::byte> part) {
        seen.body += text_of(part);
    });
    std::string waiting;
    const auto failure = run_guarded([&] {
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            waiting += bytes.substr(at, piece);
            waiting.erase(0, answer.take(waiting));
        }
        if (closes) answer.take_end();
    });
    if (failure) return {.failure = failure->code()};
    seen.status = answer.response().status;
    seen.is_whole = answer.is_whole();
    seen.keeps = answer.keeps_connection();
    seen.left = waiting.size();
    return seen;
}

Seen read_both(std::string_view bytes, bool closes = false, std::string_view method = "GET") {
    const Seen whole = read(bytes, bytes.size(), closes, method);
    EXPECT_EQ(read(bytes, 1, closes, method), whole) << bytes;
    return whole;
}

TEST(HttpAnswer, ends_where_its_length_its_chunks_or_the_connection_end) {
    const Seen whole{.status = 200, .body = "abc", .is_whole = true, .keeps = true};
    EXPECT_EQ(read_both("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), whole);
    EXPECT_EQ(read_both("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n"),
              whole);
    Seen closed = whole;
    closed.keeps = false;
    EXPECT_EQ(read_both("HTTP/1.1 200 OK\r\n\r\nabc", true), closed);
    EXPECT_EQ(read_both("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"),
              closed);
}

TEST(HttpAnswer, heads_before_the_final_one_are_passed_over) {
    const std::string_view bytes =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: 1\r\n\r\nHTTP/1.1 204 Gone\r\n\r\n";
    EXPECT_EQ(read_both(bytes), (Seen{.status = 204, .is_whole = true, .keeps = true}));
    HttpAnswer answer("PUT", [](const auto&, const auto&) {});
    answer.take("HTTP/1.1 103 Early\r\n\r\n");
    EXPECT_FALSE(answer.may_go_on());
    answer.take("HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_TRUE(answer.may_go_on());
    EXPECT_FALSE(answer.has_head());
}

TEST(HttpAnswer, to_head_has_no_body_whatever_it_says) {
    EXPECT_EQ(read_both("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, "HEAD"),
              (Seen{.status = 200, .is_whole = true, .keeps = true}));
}

TEST(HttpAnswer, what_follows_it_is_not_taken) {
    EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", 1000, false).left, 2u);
}

TEST(HttpAnswer, cut_off_is_not_whole) {
    const std::string whole =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (std::size_t length = 1; length < whole.size(); ++length) {
        EXPECT_EQ(read_both(whole.substr(0, length), true).failure, ErrorCode::unavailable)
            << length;
    }
}

TEST(HttpAnswer, what_is_no_answer_is_refused) {
    for (const char* bytes : {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
                              "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                              "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
        EXPECT_EQ(read_both(bytes).failure, ErrorCode::unavailable) << bytes;
    }
    const std::string long_head =
        "HTTP/1.1 200 OK\r\nX: " + std::string(kAnswerHeadBytesMax, 'x') + "\r\n\r\n";
    EXPECT_EQ(read(long_head, 100000, false).failure, ErrorCode::resource_exhausted);
}

}  // namespace
}  // namespace gruca::net
