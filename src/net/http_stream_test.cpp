// The promises of net/http_stream.h, held with raw sockets.
#include "net/http_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "base/boundary.h"
#include "base/error.h"
#include "base/queue.h"
#include "base/temp_dir.h"
#include "net/http_server.h"
#include "net/raw_client.h"
#include "net/socket_stream.h"

namespace gruca::net {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Everything under /s is a stream; the rest is answered with "plain".
class Streams {
  public:
    explicit Streams(HttpStreamHandler handler, HttpStreamOptions limits = {})
        : server_(options(std::move(handler), std::move(limits)),
                  [](HttpRequest, HttpReply reply) { reply.send({.body = "plain"}); }) {}

    HttpServer& server() { return server_; }
    std::uint16_t port() const { return server_.port(); }

  private:
    static HttpServerOptions options(HttpStreamHandler handler, HttpStreamOptions limits) {
        HttpServerOptions options;
        options.threads = 1;
        options.streams = std::move(limits);
        options.streams.selects = [](const HttpRequest& head) {
            return head.path().starts_with("/s");
        };
        options.streams.handler = std::move(handler);
        return options;
    }

    HttpServer server_;
};

std::string put(std::size_t length, const std::string& more = "") {
    return "PUT /s HTTP/1.1\r\nHost: h\r\n" + more + "Content-Length: " + std::to_string(length) +
           "\r\n\r\n";
}

const std::string kPlainGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string kStreamGet = "GET /s HTTP/1.1\r\nHost: h\r\n\r\n";

void echo(HttpStream& stream) {
    const std::string body = read_whole(stream, 100u << 20);
    stream.send({.headers = {{"X-Target", stream.head().target}}, .body = body});
}

TEST(HttpStream, a_body_is_read_and_answered_and_the_connection_is_kept_between_both_kinds) {
    Streams streams(echo);
    RawClient client(streams.port());
    for (int i = 0; i < 3; ++i) {
        client.send(put(3) + "abc");
        EXPECT_THAT(client.receive(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("X-Target: /s"),
                                            EndsWith("\r\n\r\nabc")));
        client.send(kPlainGet);
        EXPECT_THAT(client.receive(), EndsWith("plain"));
    }
}

TEST(HttpStream, pipelined_requests_of_both_kinds_are_answered_in_order) {
    Streams streams(echo);
    RawClient client(streams.port());
    client.send(put(1) + "a" + kPlainGet + put(2) + "bb" + kStreamGet + kPlainGet +
                "PUT /s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                "3\r\nccc\r\n0\r\n\r\n" +
                kPlainGet);
    for (const char* body : {"a", "plain", "bb", "", "plain", "ccc", "plain"}) {
        EXPECT_THAT(client.receive(), EndsWith(std::string("\r\n\r\n") + body));
    }
}

TEST(HttpStream, a_chunked_body_is_read_in_pieces_without_its_framing) {
    Streams streams([](HttpStream& stream) {
        EXPECT_FALSE(stream.body_bytes().has_value());
        std::byte piece[2];
        std::string seen;
        while (const std::size_t n = stream.read(piece)) {
            seen += text_of(std::span(piece).first(n));
        }
        EXPECT_EQ(stream.read(piece), 0u);  // And again.
        stream.send({.body = seen});
    });
    RawClient client(streams.port());
    client.send("PUT /s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.send("5;x=y\r\ndefgh\r\n0\r\nX-Late: 1\r\n\r\n");
    EXPECT_THAT(client.receive(), EndsWith("\r\n\r\nabcdefgh"));
}

TEST(HttpStream, nothing_is_read_ahead_of_the_handler) {
    std::promise<void> go_on;
    Streams streams([&](HttpStream& stream) {
        go_on.get_future().wait();
        std::byte piece[4096];
        std::size_t sum = 0;
        while (const std::size_t n = stream.read(piece)) sum += n;
        stream.send({.body = std::to_string(sum)});
    });
    RawClient client(streams.port());
    constexpr std::size_t kBytes = 64u << 20;
    client.send(put(kBytes));
    client.send_only_what_fits(kBytes);  // The sockets' own buffers.
    EXPECT_LT(client.sent_bytes(), kBytes);
    go_on.set_value();
    client.send(std::string(kBytes - client.sent_bytes(), 'x'));
    EXPECT_THAT(client.receive(), EndsWith("\r\n\r\n" + std::to_string(kBytes)));
}

TEST(HttpStream, the_client_is_told_to_go_on_by_the_first_read_only) {
    Streams streams([](HttpStream& stream) {
        if (stream.head().headers.find("X-Refuse")) return stream.send({.status = 403});
        echo(stream);
    });
    RawClient client(streams.port());
    client.send(put(3, "Expect: 100-continue\r\n"));
    EXPECT_EQ(client.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    EXPECT_THAT(client.receive(), EndsWith("\r\n\r\nabc"));
    client.send(put(3, "Expect: 100-continue\r\n") + "abc");  // Who does not wait is not told.
    EXPECT_THAT(client.receive(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\nabc")));
    client.send(put(3, "Expect: 100-continue\r\nX-Refuse: 1\r\n"));
    EXPECT_THAT(client.receive_all(),
                AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("Connection: close"),
                      Not(HasSubstr("100 Continue"))));
}

TEST(HttpStream, an_answer_before_the_body_arrives_although_megabytes_are_on_their_way) {
    Streams streams([](HttpStream& stream) { stream.send({.status = 403, .body = "no"}); });
    RawClient client(streams.port());
    client.send(put(8u << 20) + std::string(8u << 20, 'x'));
    EXPECT_THAT(client.receive_all(),
                AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("Connection: close"), EndsWith("no")));
}

TEST(HttpStream, a_small_body_left_unread_does_not_become_the_next_request) {
    Streams streams([](HttpStream& stream) { stream.send({.status = 403}); });
    RawClient client(streams.port());
    const std::string hidden = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    client.send(put(hidden.size()) + hidden + kPlainGet);
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 403"));
    EXPECT_THAT(client.receive(), EndsWith("plain"));
}

TEST(HttpStream, a_body_that_is_not_wanted_and_does_not_come_holds_no_thread) {
    Streams streams([](HttpStream& stream) { stream.send({.status = 403}); },
                    {.at_once_max = 4, .stall_time = std::chrono::hours(1)});
    std::vector<std::unique_ptr<RawClient>> silent;
    for (int i = 0; i < 16; ++i) {
        silent.push_back(std::make_unique<RawClient>(streams.port()));
        silent.back()->send(put(10) + (i % 2 == 0 ? "" : "some"));
        ASSERT_THAT(silent.back()->receive_all(),  // And the server has no more to say.
                    AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("Connection: close")));
    }
    RawClient next(streams.port());
    next.send(kStreamGet);
    EXPECT_THAT(next.receive(), StartsWith("HTTP/1.1 403"));
}

TEST(HttpStream, who_is_refused_gets_the_answer_and_no_more) {
    Streams streams([](HttpStream& stream) { stream.refuse({.status = 403, .body = "who?"}); });
    RawClient client(streams.port());
    client.send(kStreamGet + kStreamGet);
    EXPECT_THAT(client.receive_all(), AllOf(StartsWith("HTTP/1.1 403"), EndsWith("who?"),
                                            HasSubstr("Connection: close")));
}

TEST(HttpStream, a_refusal_does_not_wait_for_a_client_that_takes_nothing) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    const UniqueFd client(ends[0]);
    const std::string piece(64u << 10, 'x');
    while (::send(ends[1], piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
    }
    SocketStream stream({.socket = UniqueFd(ends[1]), .head = {.method = "GET", .target = "/s"}},
                        {.time = std::chrono::hours(1), .bytes = 1});
    const auto error = run_guarded([&] { stream.refuse({.status = 403, .body = "who?"}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::unavailable);
    EXPECT_EQ(stream.finish(true), SocketStream::End::broken);
}

TEST(HttpStream, a_client_that_vanishes_in_mid_body_is_an_error_and_no_short_body) {
    Queue<ErrorCode> codes(10);
    Streams streams([&](HttpStream& stream) {
        const auto error = run_guarded([&] { read_whole(stream, 1000); });
        codes.push(error ? error->code() : ErrorCode::internal);
        if (error) throw *error;
    });
    for (const std::string& sent :
         {put(10) + "abc",
          std::string(
              "PUT /s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
          std::string("PUT /s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
                      "0\r\n")}) {
        RawClient client(streams.port());
        client.send(sent);
        client.finish_sending();
        EXPECT_EQ(codes.pop(), ErrorCode::unavailable) << sent;
        EXPECT_EQ(client.receive_all(), "");
    }
}

TEST(HttpStream, a_body_that_stalls_or_only_drips_is_cut_off) {
    Queue<ErrorCode> codes(10);
    Streams streams(
        [&](HttpStream& stream) {
            const auto error = run_guarded([&] { read_whole(stream, 1u << 30); });
            codes.push(error ? error->code() : ErrorCode::internal);
            if (error) throw *error;
        },
        {.stall_time = std::chrono::milliseconds(100), .stall_bytes = 2u << 20});
    RawClient stalls(streams.port());
    stalls.send(put(10) + "abc");
    EXPECT_EQ(codes.pop(), ErrorCode::unavailable);
    EXPECT_EQ(stalls.receive_all(), "");
    RawClient drips(streams.port());
    drips.send(put(1u << 20));
    while (drips.try_send("x")) std::this_thread::yield();  // Ends because the server cuts it.
    EXPECT_EQ(codes.pop(), ErrorCode::unavailable);
}

TEST(HttpStream, a_reader_that_stops_reading_is_cut_off) {
    Queue<ErrorCode> codes(10);
    Streams streams(
        [&](HttpStream& stream) {
            const std::string piece(1u << 20, 'x');
            const auto error = run_guarded([&] {
                stream.begin({}, 1u << 30);
                for (int i = 0; i < 1024; ++i) stream.write(std::as_bytes(std::span(piece)));
            });
            codes.push(error ? error->code() : ErrorCode::internal);
            if (error) throw *error;
        },
        {.stall_time = std::chrono::milliseconds(100)});
    RawClient client(streams.port());
    client.send(kStreamGet);
    EXPECT_EQ(codes.pop(), ErrorCode::unavailable);
    EXPECT_TRUE(client.wait_for_reset());  // What was on its way is dropped as well.
}

TEST(HttpStream, a_malformed_chunked_body_is_invalid_and_ends_the_connection) {
    Queue<ErrorCode> codes(10);
    Streams streams([&](HttpStream& stream) {
        const auto error = run_guarded([&] { read_whole(stream, 1000); });
        codes.push(error ? error->code() : ErrorCode::internal);
        stream.send({.status = 400, .body = "malformed"});
    });
    RawClient client(streams.port());
    client.send("PUT /s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n" +
                kPlainGet);
    EXPECT_THAT(client.receive_all(), AllOf(StartsWith("HTTP/1.1 400"), EndsWith("malformed")));
    EXPECT_EQ(codes.pop(), ErrorCode::invalid_argument);
}

class Files : public testing::Test {
  protected:
    Files() {
        for (int i = 0; i < 300000; ++i) content += std::to_string(i);
        write_file_atomic(directory.path() / "f", content);
        file = open_file(directory.path() / "f", O_RDONLY);
    }

    TempDir directory;
    std::string content;
    UniqueFd file;
};

TEST_F(Files, a_range_of_a_file_is_sent_and_the_connection_kept) {
    Streams streams([&](HttpStream& stream) {
        stream.begin({.status = 206, .headers = {{"ETag", "\"e\""}}}, 1000000);
        stream.write_file(file.get(), 17, 1000000);
    });
    RawClient client(streams.port());
    for (int i = 0; i < 2; ++i) {
        client.send(kStreamGet);
        EXPECT_THAT(client.receive(), AllOf(StartsWith("HTTP/1.1 206 Partial Content\r\n"),
                                            HasSubstr("ETag: \"e\"\r\nContent-Length: 1000000\r\n"),
                                            EndsWith("\r\n\r\n" + content.substr(17, 1000000))));
    }
}

TEST_F(Files, head_states_the_length_and_sends_nothing) {
    Streams streams([&](HttpStream& stream) {
        stream.begin({}, content.size());
        stream.write_file(file.get(), 0, content.size());
    });
    RawClient client(streams.port());
    client.send("HEAD /s HTTP/1.1\r\nHost: h\r\n\r\n" + kPlainGet);
    EXPECT_THAT(client.receive_until("\r\n\r\n"),
                HasSubstr("Content-Length: " + std::to_string(content.size()) + "\r\n"));
    EXPECT_THAT(client.receive(), EndsWith("plain"));
}

TEST_F(Files, a_file_shorter_than_its_range_cuts_the_connection) {
    Queue<ErrorCode> codes(10);
    Streams streams([&](HttpStream& stream) {
        stream.begin({}, content.size() + 1);
        const auto error =
            run_guarded([&] { stream.write_file(file.get(), 0, content.size() + 1); });
        codes.push(error ? error->code() : ErrorCode::internal);
    });
    RawClient client(streams.port());
    client.send(kStreamGet);
    EXPECT_THAT(client.receive_all(), EndsWith(content));  // And then the end, one byte short.
    EXPECT_EQ(codes.pop(), ErrorCode::data_loss);
}

TEST_F(Files, an_answer_of_unknown_length_goes_in_chunks_and_to_http_1_0_until_the_end) {
    Streams streams([&](HttpStream& stream) {
        stream.begin({}, std::nullopt);
        stream.write(std::as_bytes(std::span(std::string_view("abc"))));
        stream.write({});  // Would be the last chunk, if it were written.
        stream.write_file(file.get(), 0, 4);
    });
    RawClient client(streams.port());
    client.send(kStreamGet + kPlainGet);
    EXPECT_THAT(client.receive_until("\r\n0\r\n\r\n"),
                AllOf(HasSubstr("Transfer-Encoding: chunked\r\n"),
                      EndsWith("\r\n\r\n3\r\nabc\r\n4\r\n0123\r\n0\r\n\r\n")));
    EXPECT_THAT(client.receive(), EndsWith("plain"));
    RawClient old(streams.port());
    old.send("GET /s HTTP/1.0\r\n\r\n");
    EXPECT_THAT(old.receive_all(), AllOf(Not(HasSubstr("chunked")), EndsWith("\r\n\r\nabc0123")));
}

TEST(HttpStream, an_answer_shorter_than_it_says_is_cut_off_and_a_longer_one_too) {
    for (const std::size_t length : {2u, 4u}) {
        Streams streams([&](HttpStream& stream) {
            stream.begin({}, 3);
            stream.write(std::as_bytes(std::span(std::string_view("abcd").substr(0, length))));
        });
        RawClient client(streams.port());
        client.send(kStreamGet + kPlainGet);
        EXPECT_THAT(client.receive_all(), Not(HasSubstr("plain"))) << length;
    }
}

TEST(HttpStream, a_handler_that_throws_or_forgets_gives_500_and_the_connection_lives) {
    Streams streams([](HttpStream& stream) {
        const std::string target = stream.head().target;
        if (target == "/s/throws") throw std::runtime_error("a secret");
        if (target == "/s/splits") {
            stream.send({.headers = {{"X-Value", "a\r\nSet-Cookie: b"}}});
        }
    });
    RawClient client(streams.port());
    for (const char* target : {"/s/throws", "/s/forgets", "/s/splits"}) {
        client.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n");
        EXPECT_THAT(client.receive(), AllOf(StartsWith("HTTP/1.1 500"), Not(HasSubstr("secret")),
                                            Not(HasSubstr("Set-Cookie"))))
            << target;
    }
    client.send(kPlainGet);
    EXPECT_THAT(client.receive(), EndsWith("plain"));
}

TEST(HttpStream, slow_transfers_hold_up_no_call_and_more_than_the_limit_are_told_so) {
    Queue<int> entered(10);
    Streams streams(
        [&](HttpStream& stream) {
            entered.push(1);
            echo(stream);
        },
        {.at_once_max = 2, .busy = {.status = 503, .body = "slow down"}});
    RawClient first(streams.port());
    RawClient second(streams.port());
    first.send(put(2));
    second.send(put(2));
    entered.pop();
    entered.pop();
    RawClient third(streams.port());
    third.send(kStreamGet);
    EXPECT_THAT(third.receive_all(), AllOf(StartsWith("HTTP/1.1 503"), EndsWith("slow down")));
    RawClient call(streams.port());
    call.send(kPlainGet);
    EXPECT_THAT(call.receive(), EndsWith("plain"));
    first.send("ab");
    EXPECT_THAT(first.receive(), EndsWith("ab"));
    second.send("cd");
    EXPECT_THAT(second.receive(), EndsWith("cd"));
}

TEST(HttpStream, stop_lets_nearly_done_transfers_end_and_cuts_the_others) {
    Queue<int> entered(10);
    std::optional<ErrorCode> cut;
    Streams streams([&](HttpStream& stream) {
        entered.push(1);
        const auto error = run_guarded([&] { echo(stream); });
        if (error) cut = error->code();
    });
    RawClient ends(streams.port());
    RawClient hangs(streams.port());
    ends.send(put(2));
    hangs.send(put(2));
    entered.pop();
    entered.pop();
    std::jthread stopper([&] { streams.server().stop(); });
    ends.send("ab");
    EXPECT_THAT(ends.receive_all(), EndsWith("ab"));
    EXPECT_EQ(hangs.receive_all(), "");
    stopper.join();
    EXPECT_EQ(cut, ErrorCode::unavailable);
}

TEST(HttpStream, many_transfers_at_once_are_each_answered_with_their_own) {
    Streams streams(echo);
    std::vector<std::jthread> clients;
    std::atomic<int> right = 0;
    for (int c = 0; c < 8; ++c) {
        clients.emplace_back([&, c] {
            RawClient client(streams.port());
            for (int i = 0; i < 20; ++i) {
                const std::string body(static_cast<std::size_t>(c * 5000 + i),
                                       static_cast<char>('a' + c));
                client.send(put(body.size()) + body);
                if (client.receive().ends_with("\r\n\r\n" + body)) ++right;
                client.send(kPlainGet);
                if (!client.receive().ends_with("plain")) return;
            }
        });
    }
    clients.clear();
    EXPECT_EQ(right, 160);
}

}  // namespace
}  // namespace gruca::net
