// The promises of net/http_server.h, held with raw sockets: what is sent is bytes, not requests.
#include "net/http_server.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/queue.h"
#include "base/random.h"
#include "base/text.h"
#include "net/raw_client.h"

namespace gruca::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Answers with what it was asked.
void echo(HttpRequest request, HttpReply reply) {
    std::string seen = request.method + " " + request.target;
    for (const auto& [name, value] : request.headers.fields()) seen += "|" + name + "=" + value;
    reply.send({.headers = {{"X-Seen", seen}}, .body = request.body});
}

std::string exchange(const std::string& bytes, HttpServerOptions options = {}) {
    HttpServer server(options, echo);
    RawClient client(server.port());
    client.send(bytes);
    client.finish_sending();
    return client.receive_all();
}

const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

TEST(HttpServer, gives_the_handler_the_request_as_it_was_sent) {
    EXPECT_THAT(exchange("PUT /a%20b?c=%2F HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nx-one: 2\r\n"
                         "Content-Length: 3\r\n\r\nabc"),
                testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                               HasSubstr("PUT /a%20b?c=%2F|Host=h|X-One=1|x-one=2"),
                               EndsWith("\r\n\r\nabc")));
}

TEST(HttpServer, reads_chunked_bodies_and_keeps_trailers_out_of_the_headers) {
    EXPECT_THAT(exchange("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Late: 1\r\n\r\n"),
                testing::AllOf(EndsWith("\r\n\r\nabcde"), Not(HasSubstr("X-Late"))));
}

TEST(HttpServer, keeps_the_connection_and_answers_pipelined_requests_in_order) {
    HttpServer server({}, echo);
    RawClient client(server.port());
    std::string pipeline;
    for (int i = 0; i < 20; ++i) {
        pipeline +=
            "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
    }
    client.send(pipeline);
    for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(client.receive(), HasSubstr("POST /" + std::to_string(i) + "|")) << i;
    }
    client.send(kGet);
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, closes_when_the_client_says_so_or_speaks_http_1_0) {
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
          std::string("GET / HTTP/1.0\r\n\r\n")}) {
        HttpServer server({}, echo);
        RawClient client(server.port());
        client.send(bytes);
        EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 200")) << bytes;  // And then EOF.
    }
}

TEST(HttpServer, answers_head_with_the_length_alone) {
    HttpServer server({}, [](HttpRequest, HttpReply reply) { reply.send({.body = "12345"}); });
    RawClient client(server.port());
    client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    client.finish_sending();
    EXPECT_THAT(client.receive_all(),
                testing::AllOf(HasSubstr("Content-Length: 5\r\n"), EndsWith("\r\n\r\n")));
}

TEST(HttpServer, a_head_may_have_its_limit_and_no_more) {
    const HttpServerOptions options{.head_bytes_max = 1000};
    const std::string before = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
    const std::string fits(1000 - before.size() - 4, 'x');
    EXPECT_THAT(exchange(before + fits + "\r\n\r\n", options), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(exchange(before + fits + "x\r\n\r\n", options), StartsWith("HTTP/1.1 431"));
    EXPECT_THAT(exchange(before + std::string(200000, 'x'), options), StartsWith("HTTP/1.1 431"));
}

TEST(HttpServer, a_body_may_have_its_limit_and_no_more) {
    const HttpServerOptions options{.body_bytes_max = 10};
    const auto post = [](const std::string& body) {
        return "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body;
    };
    EXPECT_THAT(exchange(post(std::string(10, 'x')), options), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(exchange(post(std::string(11, 'x')), options), StartsWith("HTTP/1.1 413"));
    // The answer arrives although megabytes that nobody reads are on their way.
    EXPECT_THAT(exchange(post(std::string(8u << 20, 'x')), options), StartsWith("HTTP/1.1 413"));
    EXPECT_THAT(exchange("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "b\r\n01234567890\r\n0\r\n\r\n",
                         options),
                StartsWith("HTTP/1.1 413"));
}

TEST(HttpServer, expect_100_continue_is_answered_before_the_body_comes) {
    HttpServer server({.body_bytes_max = 10}, echo);
    RawClient client(server.port());
    const std::string head = "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n";
    client.send(head + "Content-Length: 3\r\n\r\n");
    EXPECT_EQ(client.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    EXPECT_THAT(client.receive(), EndsWith("\r\n\r\nabc"));
    client.send(head + "Content-Length: 11\r\n\r\n");
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 413"));  // And no 100.
}

TEST(HttpServer, a_reply_may_be_kept_and_sent_later_without_holding_a_thread) {
    Queue<HttpReply> kept(10);
    HttpServer server({.threads = 1}, [&](HttpRequest request, HttpReply reply) {
        if (request.target == "/poll") {
            kept.push(reply);
        } else {
            echo(std::move(request), std::move(reply));
        }
    });
    RawClient poll(server.port());
    poll.send("GET /poll HTTP/1.1\r\nHost: h\r\n\r\n");
    const HttpReply reply = *kept.pop();
    RawClient other(server.port());
    other.send(kGet);
    EXPECT_THAT(other.receive(), StartsWith("HTTP/1.1 200"));
    reply.send({.body = "first"});
    reply.send({.body = "second"});
    EXPECT_THAT(poll.receive(), EndsWith("first"));
    poll.send("GET /after HTTP/1.1\r\nHost: h\r\n\r\n");  // The second answer is not in between.
    EXPECT_THAT(poll.receive(), HasSubstr("GET /after"));
}

TEST(HttpServer, a_handler_that_throws_or_forgets_gives_500_and_the_connection_lives) {
    HttpServer server({}, [](HttpRequest request, HttpReply reply) {
        if (request.target == "/throws") throw std::runtime_error("a secret");
        if (request.target == "/splits") {
            return reply.send({.headers = {{"X-Value", "a\r\nSet-Cookie: b"}}});
        }
        if (request.target == "/") echo(std::move(request), std::move(reply));
    });
    RawClient client(server.port());
    for (const char* target : {"/throws", "/forgets", "/splits"}) {
        client.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n");
        EXPECT_THAT(client.receive(),
                    testing::AllOf(StartsWith("HTTP/1.1 500"), Not(HasSubstr("secret")),
                                   Not(HasSubstr("Set-Cookie"))))
            << target;
    }
    client.send(kGet);
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, stop_answers_503_to_who_waits_and_outlives_kept_replies) {
    Queue<HttpReply> kept(10);
    std::optional<HttpServer> server(std::in_place, HttpServerOptions{},
                                     [&](HttpRequest, HttpReply reply) { kept.push(reply); });
    RawClient waiting(server->port());
    waiting.send(kGet);
    std::optional<HttpReply> reply = kept.pop();
    RawClient idle(server->port());
    server->stop();
    server->stop();  // Once more does nothing.
    EXPECT_THAT(waiting.receive_all(), StartsWith("HTTP/1.1 503"));
    EXPECT_EQ(idle.receive_all(), "");
    server.reset();
    reply->send({.body = "too late"});
    reply.reset();
}

TEST(HttpServer, stop_returns_when_every_handler_has_returned) {
    std::promise<void> entered;
    std::promise<void> leave;
    std::atomic<bool> left = false;
    HttpServer server({}, [&](HttpRequest, HttpReply) {
        entered.set_value();
        leave.get_future().wait();
        left = true;
    });
    RawClient client(server.port());
    client.send(kGet);
    entered.get_future().wait();
    std::jthread stopper([&] {
        server.stop();
        EXPECT_TRUE(left);
    });
    EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 503"));  // While the handler is busy.
    leave.set_value();
}

TEST(HttpServer, listens_on_more_addresses_with_the_same_port) {
    HttpServer server({}, echo);
    server.listen("127.0.0.2");
    server.listen("127.0.0.2");  // Once more does nothing.
    server.listen("127.0.0.1");
    for (const char* address : {"127.0.0.1", "127.0.0.2"}) {
        RawClient client;
        client.connect(server.port(), address);
        client.send(kGet);
        EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200")) << address;
    }
    EXPECT_THROW(server.listen("192.0.2.1"), Error);  // Not an address of any machine.
    EXPECT_THROW(server.listen("nonsense"), Error);
    server.stop();
    RawClient late;
    EXPECT_FALSE(late.try_connect(server.port(), "127.0.0.2"));
}

TEST(HttpServer, a_port_in_use_is_unavailable_and_named) {
    HttpServer server({}, echo);
    try {
        HttpServer second({.port = server.port()}, echo);
        FAIL() << "two servers listen on one port";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unavailable);
        EXPECT_THAT(error.message(), HasSubstr("127.0.0.1:" + std::to_string(server.port())));
    }
}

int highest_descriptor() {
    int highest = 0;
    DIR* listing = ::opendir("/proc/self/fd");
    while (const dirent* entry = ::readdir(listing)) {
        highest = std::max(highest, std::atoi(entry->d_name));
    }
    ::closedir(listing);
    return highest;
}

// Leaves the process no free descriptor, and its standard error a pipe, while in scope.
class NoDescriptors {
  public:
    NoDescriptors() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        complaints_ = UniqueFd(ends[0]);
        stderr_before_ = UniqueFd(::fcntl(2, F_DUPFD_CLOEXEC, 3));
        ::dup2(ends[1], 2);
        ::close(ends[1]);
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        const int highest = highest_descriptor();
        while (fill_.empty() || fill_.back().get() < highest) fill_.emplace_back(::dup(0));
        rlimit none = before_;
        none.rlim_cur = static_cast<rlim_t>(fill_.back().get()) + 1;
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    ~NoDescriptors() {
        ::setrlimit(RLIMIT_NOFILE, &before_);
        ::dup2(stderr_before_.get(), 2);
    }

    std::string wait_for_complaint() const {
        char line[4096];
        const auto n = ::read(complaints_.get(), line, sizeof line);
        return std::string(line, n > 0 ? static_cast<std::size_t>(n) : 0);
    }

  private:
    UniqueFd complaints_;
    UniqueFd stderr_before_;
    std::vector<UniqueFd> fill_;  // No hole below the limit.
    rlimit before_{};
};

TEST(HttpServer, accepting_goes_on_when_descriptors_run_out_and_come_back) {
    HttpServer server({}, echo);
    RawClient client;
    {
        const NoDescriptors none;
        client.connect(server.port());
        client.send(kGet);
        EXPECT_THAT(none.wait_for_complaint(), HasSubstr("cannot accept connections"));
    }
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, many_clients_at_once_are_each_answered_with_their_own) {
    HttpServer server({.threads = 4}, echo);
    std::vector<std::jthread> clients;
    std::atomic<int> right = 0;
    for (int c = 0; c < 8; ++c) {
        clients.emplace_back([&, c] {
            RawClient client(server.port());
            for (int i = 0; i < 50; ++i) {
                const std::string body = std::to_string(c * 1000 + i);
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " +
                            std::to_string(body.size()) + "\r\n\r\n" + body);
                if (client.receive().ends_with("\r\n\r\n" + body)) ++right;
            }
        });
    }
    clients.clear();
    EXPECT_EQ(right, 400);
}

}  // namespace
}  // namespace gruca::net
