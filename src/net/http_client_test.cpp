#include "net/http_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "base/boundary.h"
#include "base/file.h"
#include "net/http_server.h"

namespace gruca::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string origin_of(std::uint16_t port) {
    return "http://127.0.0.1:" + std::to_string(port);
}

void echo(HttpRequest request, HttpReply reply) {
    std::string seen = request.method + " " + request.target;
    for (const auto& [name, value] : request.headers.fields()) seen += "|" + name + "=" + value;
    reply.send({.status = 418, .headers = {{"X-Seen", seen}}, .body = request.body});
}

// Accepts one connection after another, and answers each with the same bytes before closing.
class RawServer {
  public:
    explicit RawServer(std::string answer) : answer_(std::move(answer)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(fd_.get(), 10), 0);
        socklen_t size = sizeof address;
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
        thread_ = std::jthread([this] { serve(); });
    }
    ~RawServer() { ::shutdown(fd_.get(), SHUT_RDWR); }
    std::uint16_t port() const { return port_; }

  private:
    void serve() const {
        for (;;) {
            const UniqueFd client(::accept(fd_.get(), nullptr, nullptr));
            if (!client.is_open()) return;
            char head[4096];
            if (::recv(client.get(), head, sizeof head, 0) <= 0) continue;
            ::send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
        }
    }

    const std::string answer_;
    UniqueFd fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::uint16_t port_ = 0;
    std::jthread thread_;
};

template <class Body>
ErrorCode code_of(Body&& body) {
    const auto error = run_guarded(std::forward<Body>(body));
    EXPECT_TRUE(error.has_value());
    return error ? error->code() : ErrorCode::internal;
}

TEST(HttpClient, sends_exactly_what_it_was_given_and_takes_any_status_as_an_answer) {
    HttpServer server({}, echo);
    HttpClient client;
    const HttpResponse response =
        client.send(origin_of(server.port()), {.method = "PATCH",
                                               .target = "/a/../b//c%20d?x=%2F&y",
                                               .headers = {{"X-One", "1"}, {"X-Empty", ""}},
                                               .body = std::string("a\0b", 3)});
    EXPECT_EQ(response.status, 418);
    EXPECT_EQ(response.body, std::string("a\0b", 3));
    EXPECT_EQ(response.headers.find("x-seen"),
              "PATCH /a/../b//c%20d?x=%2F&y|Host=127.0.0.1:" + std::to_string(server.port()) +
                  "|X-One=1|X-Empty=|Content-Length=3");
}

TEST(HttpClient, a_host_header_given_is_the_one_sent) {
    HttpServer server({}, echo);
    const HttpResponse response =
        HttpClient().send(origin_of(server.port()),
                          {.method = "GET", .target = "/", .headers = {{"Host", "elsewhere"}}});
    EXPECT_EQ(response.headers.find("X-Seen"), "GET /|Host=elsewhere");
}

TEST(HttpClient, large_bodies_go_both_ways_without_a_question_first) {
    HttpServer server({}, echo);
    std::string body(5u << 20, 'x');
    body[12345] = 'y';
    const HttpResponse response = HttpClient().send(
        origin_of(server.port()), {.method = "POST", .target = "/", .body = body});
    EXPECT_EQ(response.body, body);
    EXPECT_THAT(*response.headers.find("X-Seen"), Not(HasSubstr("Expect")));
}

TEST(HttpClient, head_and_empty_posts_work) {
    HttpServer server({}, echo);
    HttpClient client;
    const std::string origin = origin_of(server.port());
    EXPECT_EQ(client.send(origin, {.method = "HEAD", .target = "/"}).status, 418);
    EXPECT_THAT(*client.send(origin, {.method = "POST", .target = "/"}).headers.find("X-Seen"),
                HasSubstr("Content-Length=0"));
    EXPECT_THAT(*client.send(origin, {.method = "DELETE", .target = "/"}).headers.find("X-Seen"),
                HasSubstr("DELETE /"));
}

TEST(HttpClient, one_connection_serves_calls_that_follow_each_other) {
    // With room for one connection, a second one would be closed unanswered.
    HttpServer server({.connections_max = 1}, echo);
    HttpClient client;
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(client.send(origin_of(server.port()), {.method = "GET", .target = "/"}).status,
                  418);
    }
}

// Closes each connection after the one answer, although it says that it keeps it.
TEST(HttpClient, a_kept_connection_that_the_server_has_closed_is_replaced) {
    RawServer server("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    HttpClient client;
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(client.send(origin_of(server.port()), {.method = "POST", .target = "/"}).body,
                  "a");
    }
}

TEST(HttpClient, a_host_by_name_is_found_and_one_that_is_not_is_unavailable) {
    HttpServer server({}, echo);
    const std::string port = std::to_string(server.port());
    EXPECT_EQ(
        HttpClient().send("http://localhost:" + port, {.method = "GET", .target = "/"}).status,
        418);
    EXPECT_EQ(code_of([&] {
                  HttpClient().send("http://no-such-host.invalid:" + port,
                                    {.method = "GET", .target = "/"});
              }),
              ErrorCode::unavailable);
}

TEST(HttpClient, concurrent_calls_do_not_wait_for_each_other) {
    constexpr int kCalls = 8;
    std::atomic<int> arrived = 0;
    std::promise<void> all_here;
    HttpServer server({.threads = kCalls},
                      [&, together = all_here.get_future().share()](HttpRequest, HttpReply reply) {
                          if (++arrived == kCalls) all_here.set_value();
                          together.wait();
                          reply.send({});
                      });
    HttpClient client;
    std::vector<std::jthread> calls;
    for (int i = 0; i < kCalls; ++i) {
        calls.emplace_back([&] {
            EXPECT_EQ(
                client.send(origin_of(server.port()), {.method = "GET", .target = "/"}).status,
                200);
        });
    }
}

TEST(HttpClient, nobody_listening_is_unavailable_and_named) {
    std::uint16_t port = 0;
    { port = HttpServer({}, echo).port(); }
    const auto error =
        run_guarded([&] { HttpClient().send(origin_of(port), {.method = "GET", .target = "/"}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::unavailable);
    EXPECT_THAT(error->message(), HasSubstr("127.0.0.1:" + std::to_string(port)));
}

TEST(HttpClient, an_answer_cut_off_is_unavailable) {
    for (const char* answer : {"", "HTTP/1.1 200 OK\r\nContent-Le",
                               "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"}) {
        RawServer server(answer);
        EXPECT_EQ(code_of([&] {
                      HttpClient().send(origin_of(server.port()), {.method = "GET", .target = "/"});
                  }),
                  ErrorCode::unavailable)
            << answer;
    }
}

class SilentServer : public testing::Test {
  protected:
    void SetUp() override {
        server.emplace(HttpServerOptions{}, [this](HttpRequest, HttpReply reply) {
            kept.emplace(reply);
            asked.set_value();
        });
    }

    std::optional<HttpReply> kept;
    std::promise<void> asked;
    std::optional<HttpServer> server;
};

TEST_F(SilentServer, is_given_up_when_the_time_is_over) {
    EXPECT_EQ(code_of([&] {
                  HttpClient().send(origin_of(server->port()), {.method = "GET", .target = "/"},
                                    std::chrono::milliseconds(50));
              }),
              ErrorCode::deadline_exceeded);
    asked.get_future().wait();
    server->stop();
}

TEST_F(SilentServer, is_left_when_the_call_is_cancelled) {
    std::atomic<bool> cancelled = false;
    auto call = std::async(std::launch::async, [&] {
        return code_of([&] {
            HttpClient().send(origin_of(server->port()), {.method = "GET", .target = "/"}, {},
                              [&] { return cancelled.load(); });
        });
    });
    asked.get_future().wait();
    cancelled = true;
    EXPECT_EQ(call.get(), ErrorCode::cancelled);
    server->stop();
}

TEST(HttpClient, redirects_are_answers_and_not_followed) {
    HttpServer server({}, [](HttpRequest request, HttpReply reply) {
        if (request.target == "/") {
            return reply.send({.status = 302, .headers = {{"Location", "/there"}}});
        }
        ADD_FAILURE() << "followed to " << request.target;
        reply.send({});
    });
    const HttpResponse response =
        HttpClient().send(origin_of(server.port()), {.method = "GET", .target = "/"});
    EXPECT_EQ(response.status, 302);
    EXPECT_EQ(response.headers.find("location"), "/there");
}

TEST(HttpClient, proxies_named_in_the_environment_are_ignored) {
    HttpServer server({}, echo);
    for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"}) {
        ::setenv(name, "http://127.0.0.1:1", 1);
    }
    EXPECT_EQ(HttpClient().send(origin_of(server.port()), {.method = "GET", .target = "/"}).status,
              418);
    for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"}) ::unsetenv(name);
}

TEST(HttpClient, an_answer_longer_than_allowed_is_refused) {
    HttpServer server({}, echo);
    HttpClient client({.body_bytes_max = 10});
    const auto post = [&](std::size_t bytes) {
        return client.send(origin_of(server.port()),
                           {.method = "POST", .target = "/", .body = std::string(bytes, 'x')});
    };
    EXPECT_EQ(post(10).body.size(), 10u);
    EXPECT_EQ(code_of([&] { post(11); }), ErrorCode::resource_exhausted);
}

TEST(HttpClient, what_would_break_the_request_apart_is_refused) {
    HttpServer server({}, echo);
    const std::vector<HttpRequest> bad = {
        {.method = "GET", .target = "/ HTTP/1.1\r\nX: y"},
        {.method = "GET", .target = "/a b"},
        {.method = "GET", .target = "relative"},
        {.method = "GET\r\n", .target = "/"},
        {.method = "GET", .target = "/", .headers = {{"X", "a\r\nY: b"}}},
        {.method = "GET", .target = "/", .headers = {{"X\n", "a"}}},
    };
    for (const HttpRequest& request : bad) {
        EXPECT_EQ(code_of([&] { HttpClient().send(origin_of(server.port()), request); }),
                  ErrorCode::invalid_argument);
    }
    EXPECT_EQ(code_of([&] { HttpClient().send("https://h:1", {.method = "GET", .target = "/"}); }),
              ErrorCode::invalid_argument);
}

// Streams: /count answers with the number of bytes that came, /make with as many as the query says,
// /refuse and /short as their names say.
HttpServerOptions stream_options() {
    HttpServerOptions options;
    options.streams.selects = [](const HttpRequest&) { return true; };
    options.streams.handler = [](HttpStream& stream) {
        std::vector<std::byte> piece(100000);
        if (stream.head().target == "/refuse") return stream.send({.status = 403, .body = "no"});
        if (stream.head().target == "/count") {
            std::size_t sum = 0;
            while (const std::size_t n = stream.read(piece)) sum += n;
            return stream.send({.body = std::to_string(sum)});
        }
        const std::size_t length = std::stoul(std::string(stream.head().query()));
        stream.begin({}, length + (stream.head().path() == "/short" ? 1 : 0));
        for (std::size_t left = length; left > 0;) {
            const std::size_t n = std::min(left, piece.size());
            stream.write(std::span(piece).first(n));
            left -= n;
        }
    };
    return options;
}

class HttpTransfers : public testing::Test {
  protected:
    HttpServer server{stream_options(), echo};
    HttpClient client;
    static constexpr std::uint64_t kBytes = 100u << 20;  // More than a body in memory may have.

    HttpResponse call(const std::string& method, const std::string& target,
                      const HttpTransfer& transfer) {
        return client.transfer(origin_of(server.port()),
                               {.method = method,
                                .target = target,
                                .headers = {{"Expect", method == "PUT" ? "100-continue" : ""}}},
                               transfer);
    }
    static std::size_t fill(std::span<std::byte> into) { return (into.size() + 1) / 2; }
};

TEST_F(HttpTransfers, a_long_body_goes_up_and_a_long_answer_comes_down_in_pieces) {
    for (int i = 0; i < 2; ++i) {
        const HttpResponse counted =
            call("PUT", "/count", {.upload_bytes = kBytes, .upload = fill});
        EXPECT_EQ(counted.status, 200);
        EXPECT_EQ(counted.body, std::to_string(kBytes));
        std::uint64_t sum = 0;
        const HttpResponse made =
            call("GET", "/make?" + std::to_string(kBytes),
                 {.download = [&](std::span<const std::byte> bytes) { sum += bytes.size(); }});
        EXPECT_EQ(made.status, 200);
        EXPECT_EQ(sum, kBytes);
    }
}

TEST_F(HttpTransfers, the_body_of_a_refusal_is_not_taken_for_the_object) {
    const auto never = [](std::span<const std::byte>) { FAIL(); };
    const HttpResponse get = call("GET", "/refuse", {.download = never});
    EXPECT_EQ(get.status, 403);
    EXPECT_EQ(get.body, "no");
    // Refused before it was told to send: nothing was uploaded.
    std::uint64_t uploaded = 0;
    const HttpResponse put = call("PUT", "/refuse",
                                  {.upload_bytes = kBytes,
                                   .upload =
                                       [&](std::span<std::byte> into) {
                                           uploaded += into.size();
                                           return into.size();
                                       },
                                   .download = never});
    EXPECT_EQ(put.status, 403);
    EXPECT_EQ(uploaded, 0u);
}

TEST_F(HttpTransfers, a_body_cut_off_is_unavailable_and_what_a_function_throws_comes_out) {
    EXPECT_EQ(code_of([&] {
                  call("GET", "/short?1000", {.download = [](std::span<const std::byte>) {}});
              }),
              ErrorCode::unavailable);
    EXPECT_EQ(code_of([&] {
                  call("GET", "/make?1000", {.download = [](std::span<const std::byte>) {
                           throw Error(ErrorCode::data_loss, "no");
                       }});
              }),
              ErrorCode::data_loss);
    EXPECT_EQ(code_of([&] {
                  call("PUT", "/count",
                       {.upload_bytes = 10, .upload = [](std::span<std::byte>) -> std::size_t {
                            throw Error(ErrorCode::data_loss, "no");
                        }});
              }),
              ErrorCode::data_loss);
    EXPECT_EQ(code_of([&] {
                  call("PUT", "/count",
                       {.upload_bytes = 10,
                        .upload = [](std::span<std::byte>) -> std::size_t { return 0; }});
              }),
              ErrorCode::internal);
}

}  // namespace
}  // namespace gruca::net
