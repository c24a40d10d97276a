// What clients do to a server that they want to confuse, to block or to fill: net/http_server.h
// goes on answering the others.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/queue.h"
#include "base/random.h"
#include "base/text.h"
#include "net/http_server.h"
#include "net/raw_client.h"

namespace gruca::net {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::string_literals;

void echo(HttpRequest request, HttpReply reply) {
    reply.send(
        {.headers = {{"X-Seen", request.method + " " + request.target}}, .body = request.body});
}

std::string exchange_with(const HttpServer& server, const std::string& bytes) {
    RawClient client(server.port());
    client.send(bytes);
    client.finish_sending();
    return client.receive_all();
}

std::string exchange(const std::string& bytes) {
    HttpServer server({}, echo);
    return exchange_with(server, bytes);
}

const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

TEST(HostileClient, smuggled_and_malformed_heads_are_refused_and_the_connection_closed) {
    const std::string body = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    for (const std::string& head : std::vector<std::string>{
             "Host: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
             "Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
             "Host: h\r\nContent-Length: 5\r\nContent-Length: 6",
             "Host: h\r\nContent-Length: 5, 5",
             "Host: h\r\nContent-Length: -1",
             "Host: h\r\nContent-Length: +5",
             "Host: h\r\nContent-Length: 0x5",
             "Host: h\r\nContent-Length: 99999999999999999999",
             "Host: h\r\nTransfer-Encoding: gzip, chunked",
             "Host: h\r\nTransfer-Encoding: chunked, identity",
             "Host: h\r\nTransfer-Encoding: xchunked",
             "Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
             "Host: h\r\nContent-Length : 5",
             "Host: h\r\nBad Name: x",
             "Host: h\r\n: x",
             "Host: h\r\nno colon",
             "Host: a\r\nHost: b",
             "X: no host",
             "Host: h\r\nX: folded\r\n Content-Length: 5",
             "Host: h\r\n\tX: 1",
             "Host: h\nX: 1",
             "Host: h\rX: 1",
             "Host: h\r\nX: a\x01",
             "Host: h\r\nX: a\x7f",
             std::string("Host: h\r\nX: a\0b", 15),
             "Host: h\r\nTransfer-Encoding: chunked\x0b",
             "Host: h\r\nTransfer_Encoding: chunked\r\nContent-Length : 5",
             "Host: h\r\nContent-Length: 5\r\ncontent-length: 5"}) {
        const std::string answer = exchange("POST / HTTP/1.1\r\n" + head + "\r\n\r\n" + body);
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 4")) << head;
        EXPECT_THAT(answer, Not(HasSubstr("smuggled"))) << head;
        EXPECT_THAT(answer, HasSubstr("Connection: close")) << head;
    }
    for (const char* line :
         {"GET / HTTP/2.0", "GET /", "GET http://h/ HTTP/1.1", "GET  / HTTP/1.1",
          "CONNECT h:1 HTTP/1.1", "G\x01T / HTTP/1.1", "GET / HTTP/1.10", "GET * HTTP/1.1",
          "GET h:1/ HTTP/1.1", "GET \\ HTTP/1.1", "GET /\xc3\xa9 HTTP/1.1", "GET /a\tb HTTP/1.1",
          "GET /a b HTTP/1.1", " GET / HTTP/1.1", "GET / HTTP/1.1 ", "GET / http/1.1",
          "GET / HTTP/1.1\n"}) {
        EXPECT_THAT(exchange(std::string(line) + "\r\nHost: h\r\n\r\n"), StartsWith("HTTP/1.1 400"))
            << line;
    }
    EXPECT_THAT(exchange("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                StartsWith("HTTP/1.1 400"));
}

std::string in_chunks(const std::string& chunks) {
    return "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks;
}

TEST(HostileClient, a_malformed_chunked_body_is_refused) {
    for (const char* chunks :
         {"zz\r\n", "-1\r\n", "0x5\r\nabcde\r\n0\r\n\r\n", "fffffffffffffffff\r\nabc",
          "10000000000000005\r\nabcde\r\n0\r\n\r\n", "5\r\nabcdefg\r\n0\r\n\r\n",
          "5 5\r\nabcde\r\n0\r\n\r\n"}) {
        EXPECT_THAT(exchange(in_chunks(chunks) + kGet),
                    AllOf(StartsWith("HTTP/1.1 4"), Not(HasSubstr("HTTP/1.1 200"))))
            << chunks;
    }
}

TEST(HostileClient, a_chunk_extension_without_end_is_refused_and_not_kept) {
    EXPECT_THAT(exchange(in_chunks("1;" + std::string(1u << 20, 'x'))), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(exchange(in_chunks("0\r\nX: " + std::string(1u << 20, 'x'))),
                StartsWith("HTTP/1.1 4"));
}

TEST(HostileClient, more_header_fields_than_the_limit_are_refused) {
    std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (int i = 0; i < 300; ++i) head += "X: 1\r\n";
    EXPECT_THAT(exchange(head + "\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST(HostileClient, odd_targets_reach_the_handler_as_they_were_sent) {
    for (const char* target : {"//", "/..", "/%00", "/a//../b?c=/../d", "/?", "/???", "/%zz"}) {
        EXPECT_THAT(exchange("GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n"),
                    HasSubstr("X-Seen: GET " + std::string(target) + "\r\n"));
    }
}

TEST(HostileClient, one_that_is_too_slow_is_cut_off) {
    HttpServer server({.read_timeout = std::chrono::milliseconds(50)}, echo);
    for (const char* part :
         {"", "GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"}) {
        RawClient client(server.port());
        client.send(part);
        EXPECT_EQ(client.receive_all(), "") << part;
    }
}

// The limit is on the whole head and the whole body: a byte now and then does not renew it.
TEST(HostileClient, one_that_sends_byte_by_byte_is_cut_off) {
    HttpServer server({.read_timeout = std::chrono::milliseconds(100)}, echo);
    for (const char* begin : {"GET / HTTP/1.1\r\nHost: h\r\nX: ",
                              "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n"}) {
        RawClient client(server.port());
        client.send(begin);
        while (client.try_send("x")) {  // Ends because the server cuts it.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
}

TEST(HostileClient, one_that_does_not_read_its_answer_is_cut_off_and_the_answer_dropped) {
    HttpServer server(
        {.read_timeout = std::chrono::milliseconds(100)},
        [](HttpRequest, HttpReply reply) { reply.send({.body = std::string(64u << 20, 'x')}); });
    RawClient client(server.port());
    client.send(kGet);
    EXPECT_TRUE(client.wait_for_reset());
}

std::string post(std::size_t length, const std::string& more = "") {
    return "POST / HTTP/1.1\r\nHost: h\r\n" + more + "Content-Length: " + std::to_string(length) +
           "\r\n\r\n";
}

TEST(HostileClient, bodies_that_are_announced_and_do_not_come_take_no_room) {
    HttpServer server({.bodies_bytes_max = 300000}, echo);
    std::vector<std::unique_ptr<RawClient>> silent;
    for (const std::string& head : {post(16u << 20, "Expect: 100-continue\r\n"),
                                    "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n"s}) {
        for (int i = 0; i < 8; ++i) {
            silent.push_back(std::make_unique<RawClient>(server.port()));
            silent.back()->send(head);
            EXPECT_THAT(silent.back()->receive(), HasSubstr("100 Continue"));
        }
    }
    const std::string body(200000, 'x');
    EXPECT_THAT(exchange_with(server, post(body.size()) + body), EndsWith("\r\n\r\n" + body));
    silent.back()->send("3\r\nabc\r\n0\r\n\r\n");  // Nor did it cost them theirs.
    EXPECT_THAT(silent.back()->receive(), EndsWith("\r\n\r\nabc"));
}

TEST(HostileClient, of_long_bodies_that_do_not_end_the_one_that_waits_longest_gives_way) {
    HttpServer server({.bodies_bytes_max = 300000}, echo);
    const std::string body(200000, 'x');
    RawClient first(server.port());
    first.send(post(body.size()) + body);  // And again: what is answered is given back.
    EXPECT_THAT(first.receive(), EndsWith(body));
    first.send(post(body.size()) + body.substr(1));
    for (int i = 0; i < 1000 && !first.has_more(); ++i) {  // It is seen in the server's own time.
        EXPECT_THAT(exchange_with(server, post(body.size()) + body), StartsWith("HTTP/1.1 200"));
    }
    EXPECT_TRUE(first.has_more());
    // The end; it is told so when it was the one that asked for more.
    EXPECT_THAT(first.receive_all(),
                ::testing::AnyOf(::testing::IsEmpty(), StartsWith("HTTP/1.1 503")));
}

TEST(HostileClient, long_bodies_at_work_have_a_limit_that_short_calls_do_not_feel) {
    Queue<HttpReply> kept(10);
    HttpServer server({.bodies_bytes_max = 300000}, [&](HttpRequest request, HttpReply reply) {
        request.headers.find("X-Keep") ? void(kept.push(reply)) : echo(std::move(request), reply);
    });
    const std::string body(200000, 'x');
    RawClient first(server.port());
    first.send(post(body.size(), "X-Keep: 1\r\n") + body);
    const HttpReply reply = *kept.pop();
    RawClient second(server.port());
    second.send(post(body.size()) + body);
    EXPECT_THAT(second.receive(), StartsWith("HTTP/1.1 503"));
    EXPECT_THAT(exchange_with(server, post(16384) + std::string(16384, 'y')),
                StartsWith("HTTP/1.1 200"));
    reply.send({.body = "late"});
    EXPECT_THAT(first.receive(), EndsWith("late"));
    EXPECT_THAT(exchange_with(server, post(body.size()) + body), EndsWith(body));
}

TEST(HostileClient, bodies_of_every_length_arrive_whole_however_they_are_sent) {
    HttpServer server({.body_bytes_max = 100000}, echo);
    RawClient client(server.port());
    for (const std::size_t length : {1, 4095, 4096, 4097, 16384, 16385, 65537, 100000}) {
        std::string body;
        while (body.size() < length) body += std::to_string(body.size());
        body.resize(length);
        client.send(post(length) + body);
        EXPECT_THAT(client.receive(), EndsWith("\r\n\r\n" + body)) << length;
        std::string chunks;
        for (std::size_t at = 0; at < length; at += 9000) {
            const std::string chunk = body.substr(at, 9000);
            chunks += fmt::format("{:x}", chunk.size()) + "\r\n" + chunk + "\r\n";
        }
        client.send(in_chunks(chunks + "0\r\nX-Late: 1\r\n\r\n"));
        EXPECT_THAT(client.receive(), EndsWith("\r\n\r\n" + body)) << length;
    }
    EXPECT_THAT(exchange_with(server, in_chunks("186a1\r\n" + std::string(100001, 'x'))),
                StartsWith("HTTP/1.1 413"));
}

TEST(HostileClient, connections_that_do_not_end_their_body_give_way_to_new_ones) {
    HttpServer server({.connections_max = 2}, echo);
    RawClient first(server.port());
    RawClient second(server.port());
    for (RawClient* client : {&first, &second}) {
        client->send(post(10, "Expect: 100-continue\r\n"));
        EXPECT_THAT(client->receive(), HasSubstr("100 Continue"));
    }
    RawClient third(server.port());
    third.send(kGet);
    EXPECT_THAT(third.receive(), StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(first.receive_all(), "");
    second.send("0123456789");
    EXPECT_THAT(second.receive(), EndsWith("0123456789"));
}

TEST(HostileClient, connections_that_were_refused_give_way_to_new_ones) {
    HttpServer server({.connections_max = 1}, echo);
    RawClient refused(server.port());
    refused.send("GET / HTTP/2.0\r\n\r\n");
    EXPECT_THAT(refused.receive_all(), StartsWith("HTTP/1.1 400"));  // It has not closed its end.
    RawClient next(server.port());
    next.send(kGet);
    EXPECT_THAT(next.receive(), StartsWith("HTTP/1.1 200"));
}

TEST(HostileClient, idle_connections_give_way_to_new_ones_the_longest_idle_first) {
    HttpServer server({.connections_max = 2}, echo);
    RawClient first(server.port());
    first.send(kGet);
    EXPECT_THAT(first.receive(), StartsWith("HTTP/1.1 200"));
    RawClient second(server.port());
    second.send(kGet);
    EXPECT_THAT(second.receive(), StartsWith("HTTP/1.1 200"));
    RawClient third(server.port());
    third.send(kGet);
    EXPECT_THAT(third.receive(), StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(first.receive_all(), "");
    second.send(kGet);
    EXPECT_THAT(second.receive(), StartsWith("HTTP/1.1 200"));
}

TEST(HostileClient, a_connection_over_the_limit_is_closed_when_all_others_are_at_work) {
    Queue<HttpReply> kept(10);
    HttpServer server({.connections_max = 1},
                      [&](HttpRequest, HttpReply reply) { kept.push(reply); });
    RawClient first(server.port());
    first.send(kGet);
    const HttpReply reply = *kept.pop();
    RawClient second(server.port());
    second.send(kGet);
    EXPECT_EQ(second.receive_all(), "");
    reply.send({.body = "late"});
    EXPECT_THAT(first.receive(), EndsWith("late"));
}

// Another process, because both ends of so many connections do not fit into one. It connects, says
// how often it could, and holds them until it is told to end.
class Crowd {
  public:
    Crowd() {
        EXPECT_EQ(::pipe2(to_.data(), O_CLOEXEC), 0);
        EXPECT_EQ(::pipe2(from_.data(), O_CLOEXEC), 0);
        pid_ = ::fork();  // Before the test has any thread.
        if (pid_ == 0) be_a_crowd();
        ::close(to_[0]);
        ::close(from_[1]);
    }
    ~Crowd() {
        ::close(to_[1]);
        ::waitpid(pid_, nullptr, 0);
        ::close(from_[0]);
    }

    int connect(std::uint16_t port, int count) {
        const std::array<int, 2> order = {port, count};
        EXPECT_EQ(::write(to_[1], order.data(), sizeof order), ssize_t{sizeof order});
        int connected = 0;
        EXPECT_EQ(::read(from_[0], &connected, sizeof connected), ssize_t{sizeof connected});
        return connected;
    }

  private:
    [[noreturn]] void be_a_crowd() {
        ::close(to_[1]);
        std::array<int, 2> order{};
        if (::read(to_[0], order.data(), sizeof order) != ssize_t{sizeof order}) ::_exit(1);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(order[0]));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int connected = 0;
        while (connected < order[1]) {
            const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
            if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) break;
            if (::send(fd, "GET / HT", 8, MSG_NOSIGNAL) != 8) break;
            ++connected;
        }
        char end = 0;
        const bool told = ::write(from_[1], &connected, sizeof connected) > 0;
        ::_exit(told && ::read(to_[0], &end, 1) == 0 ? 0 : 1);
    }

    std::array<int, 2> to_{};
    std::array<int, 2> from_{};
    pid_t pid_ = -1;
};

std::size_t resident_bytes() {
    const std::vector<std::string> pages = split(read_file("/proc/self/statm"), ' ');
    return static_cast<std::size_t>(std::stoul(pages.at(1))) *
           static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kBytesPerConnectionMax = 256u << 10;  // With what a sanitizer keeps beside.
#else
constexpr std::size_t kBytesPerConnectionMax = 16u << 10;
#endif

TEST(HostileClient, ten_thousand_open_connections_cost_little_and_keep_nobody_out) {
    constexpr int kConnections = 10000;
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < kConnections + 100) {
        GTEST_SKIP() << "this process may open only " << limit.rlim_max << " descriptors";
    }
    const rlimit before = limit;
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    {
        Crowd crowd;
        HttpServer server({}, echo);
        RawClient call(server.port());
        call.send(kGet);
        EXPECT_THAT(call.receive(), StartsWith("HTTP/1.1 200"));
        const std::size_t bytes_before = resident_bytes();
        EXPECT_EQ(crowd.connect(server.port(), kConnections), kConnections);
        RawClient later(server.port());
        later.send(kGet);
        EXPECT_THAT(later.receive(), StartsWith("HTTP/1.1 200"));  // All before it are accepted.
        call.send(kGet);
        EXPECT_THAT(call.receive(), StartsWith("HTTP/1.1 200"));
        const std::size_t grown = resident_bytes() - bytes_before;
        RecordProperty("bytes_per_connection", std::to_string(grown / kConnections));
        EXPECT_LT(grown / kConnections, kBytesPerConnectionMax);
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(HostileClient, damaged_requests_never_bring_it_down) {
    HttpServer server({.read_timeout = std::chrono::milliseconds(200)}, echo);
    const std::string good =
        "POST /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
        "\r\n3\r\nabc\r\n0\r\n\r\n" +
        kGet;
    constexpr std::string_view kSpice("\r\n\0 :;,0f\x80\xff", 12);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Philox chance(seed, 0);
        std::string bytes = good;
        const std::uint64_t changes = 1 + chance.below(4, 0);
        for (std::uint64_t i = 1; i <= changes; ++i) {
            const std::size_t at = chance.below(bytes.size(), 3 * i);
            const char spice = kSpice[chance.below(kSpice.size(), 3 * i + 1)];
            const std::uint64_t kind = chance.below(3, 3 * i + 2);
            if (kind == 0) bytes[at] = spice;
            if (kind == 1) bytes.insert(at, 1, spice);
            if (kind == 2) bytes.erase(at, 1);
        }
        RawClient client(server.port());
        client.send(bytes);
        client.finish_sending();
        client.receive_all();
    }
    RawClient client(server.port());
    client.send(kGet);
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace gruca::net
