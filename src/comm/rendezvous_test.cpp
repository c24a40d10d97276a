#include "comm/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <latch>

#include "base/boundary.h"
#include "base/text.h"
#include "comm/rendezvous_wire.h"

namespace gruca::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong = std::chrono::seconds(60);
constexpr const char* kAddress = "127.64.1.1";

class Rendezvous : public testing::Test {
  protected:
    RendezvousClient::Options client(int rank) const {
        return {.server = {kAddress, server->port()},
                .rank = rank,
                .size = 2,
                .secret = "job-1",
                .join_timeout = kLong};
    }

    std::optional<ErrorCode> join_error(const RendezvousClient::Options& options) const {
        const auto error = run_guarded([&] { RendezvousClient joined(options); });
        return error ? std::optional(error->code()) : std::nullopt;
    }

    // A connection that speaks for itself, and what it hears until the server hangs up.
    UniqueFd connect() const { return std::move(*try_connect({kAddress, server->port()}, kLong)); }
    static void say(const UniqueFd& fd, std::string_view bytes) {
        ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    static std::string hear_all(const UniqueFd& fd) {
        std::string heard;
        char bytes[1000];
        for (ssize_t count; (count = recv(fd.get(), bytes, sizeof bytes, 0)) > 0;) {
            heard.append(bytes, static_cast<std::size_t>(count));
        }
        return heard;
    }
    static std::string hello(const std::string& rank) {
        return encode({FrameType::hello, {std::string(kRendezvousMagic), "2", rank, "job-1"}});
    }

    void expect_the_job_goes_on() const {
        RendezvousClient zero(client(0));
        RendezvousClient one(client(1));
        zero.set("from-zero", "0");
        EXPECT_EQ(one.get("from-zero", kLong), "0");
        EXPECT_FALSE(zero.ending());
        EXPECT_FALSE(one.ending());
    }

    std::unique_ptr<RendezvousServer> server = make_server();

    static std::unique_ptr<RendezvousServer> make_server(std::uint16_t port = 0) {
        return std::make_unique<RendezvousServer>(
            RendezvousServer::Options{.endpoint = {kAddress, port}, .size = 2, .secret = "job-1"});
    }
};

TEST_F(Rendezvous, a_value_is_waited_for_and_then_there_for_all) {
    RendezvousClient zero(client(0));
    RendezvousClient one(client(1));
    auto early = std::async(std::launch::async, [&] { return one.get("address", kLong); });
    zero.set("address", std::string("a\0b", 3));
    EXPECT_EQ(early.get(), std::string("a\0b", 3));
    EXPECT_EQ(zero.get("address", kLong), std::string("a\0b", 3));
    EXPECT_EQ(one.get("address", kLong), std::string("a\0b", 3));
}

TEST_F(Rendezvous, a_value_that_never_comes_is_a_deadline_exceeded) {
    RendezvousClient zero(client(0));
    const auto error = run_guarded([&] { zero.get("never", milliseconds(20)); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::deadline_exceeded);
}

TEST_F(Rendezvous, a_client_that_comes_before_the_server_is_let_in_later) {
    const std::uint16_t port = server->port();
    const auto early = client(0);
    server.reset();
    std::latch about_to_join(1);
    auto joined = std::async(std::launch::async, [&] {
        about_to_join.count_down();
        return join_error(early);
    });
    about_to_join.wait();
    server = make_server(port);
    EXPECT_EQ(joined.get(), std::nullopt);
}

TEST_F(Rendezvous, without_a_server_joining_ends_at_the_deadline) {
    auto options = client(0);
    options.join_timeout = milliseconds(50);
    server.reset();
    EXPECT_EQ(join_error(options), ErrorCode::deadline_exceeded);
}

TEST_F(Rendezvous, who_does_not_belong_is_refused_and_does_no_harm) {
    auto other_job = client(0);
    other_job.secret = "job-2";
    other_job.join_timeout = milliseconds(50);
    EXPECT_EQ(join_error(other_job), ErrorCode::permission_denied);

    auto other_size = client(0);
    other_size.size = 3;
    EXPECT_EQ(join_error(other_size), ErrorCode::invalid_argument);

    auto no_such_rank = client(2);
    EXPECT_EQ(join_error(no_such_rank), ErrorCode::invalid_argument);

    expect_the_job_goes_on();
}

TEST_F(Rendezvous, a_rank_exists_once) {
    RendezvousClient one(client(1));
    EXPECT_EQ(join_error(client(1)), ErrorCode::invalid_argument);
    EXPECT_FALSE(one.wait_for_ending(milliseconds(0)));
}

TEST_F(Rendezvous, strangers_are_dropped_and_do_no_harm) {
    const std::string stranger_sets = encode({FrameType::set, {"from-zero", "poison"}});
    const std::string huge_frame("\xff\xff\xff\x7f rest", 9);
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), stranger_sets, huge_frame,
          encode({FrameType::hello, {"another protocol", "2", "0", "job-1"}}),
          encode({FrameType::hello, {std::string(2000, 'x')}})}) {
        const UniqueFd fd = connect();
        say(fd, bytes);
        EXPECT_EQ(hear_all(fd), "");
    }
    const UniqueFd unfinished = connect();
    say(unfinished, hello("0").substr(0, 10));
    const UniqueFd mute = connect();
    expect_the_job_goes_on();
}

TEST_F(Rendezvous, a_stranger_who_says_nothing_is_not_kept_for_ever) {
    server = std::make_unique<RendezvousServer>(
        RendezvousServer::Options{.endpoint = {kAddress, 0},
                                  .size = 2,
                                  .secret = "job-1",
                                  .hello_timeout = milliseconds(20)});
    const UniqueFd mute = connect();
    EXPECT_EQ(hear_all(mute), "");
    expect_the_job_goes_on();
}

TEST_F(Rendezvous, an_abort_reaches_every_rank_once) {
    std::promise<Ending> told;
    auto options = client(1);
    options.on_ending = [&](const Ending& ending) { told.set_value(ending); };
    RendezvousClient zero(client(0));
    RendezvousClient one(options);
    zero.abort("disk full");
    const Ending ending = told.get_future().get();
    EXPECT_EQ(ending.code, ErrorCode::cancelled);
    EXPECT_THAT(ending.reason, testing::HasSubstr("rank 0"));
    EXPECT_THAT(ending.reason, testing::HasSubstr("disk full"));
    ASSERT_TRUE(zero.wait_for_ending(kLong));
    EXPECT_EQ(zero.ending()->reason, ending.reason);
    EXPECT_TRUE(run_guarded([&] { one.get("anything", kLong); }));
    one.abort("so do I");  // Too late to change the reason; and told is set once only.
}

TEST_F(Rendezvous, an_abort_is_passed_on_even_if_the_server_ends_at_once) {
    RendezvousClient one(client(1));
    {
        RendezvousClient zero(client(0));
        zero.abort("disk full");
    }
    server.reset();
    ASSERT_TRUE(one.wait_for_ending(kLong));
    EXPECT_EQ(one.ending()->code, ErrorCode::cancelled);
}

TEST_F(Rendezvous, a_rank_that_vanishes_ends_the_group_and_one_that_leaves_does_not) {
    RendezvousClient zero(client(0));
    {
        RendezvousClient one(client(1));
        one.set("done", "yes");
    }
    EXPECT_EQ(zero.get("done", kLong), "yes");
    EXPECT_FALSE(zero.wait_for_ending(milliseconds(20)));

    server = make_server();
    RendezvousClient again(client(0));
    UniqueFd vanishing = connect();
    say(vanishing, hello("1"));
    vanishing.reset();
    ASSERT_TRUE(again.wait_for_ending(kLong));
    EXPECT_EQ(again.ending()->code, ErrorCode::unavailable);
    EXPECT_THAT(again.ending()->reason, testing::HasSubstr("rank 1"));
}

TEST_F(Rendezvous, a_server_that_leaves_in_order_ends_nothing) {
    RendezvousClient one(client(1));
    server.reset();
    EXPECT_FALSE(one.wait_for_ending(kLong));  // Returns at once: the server has said it leaves.
}

TEST_F(Rendezvous, a_key_is_set_once) {
    RendezvousClient zero(client(0));
    RendezvousClient one(client(1));
    zero.set("key", "first");
    EXPECT_EQ(one.get("key", kLong), "first");
    one.set("key", "second");
    ASSERT_TRUE(zero.wait_for_ending(kLong));  // Rank 1 broke the rules and was dropped.
    EXPECT_EQ(zero.ending()->code, ErrorCode::unavailable);
}

TEST(RendezvousWire, frames_survive_being_cut_anywhere) {
    const std::vector<Frame> frames = {{FrameType::welcome, {}},
                                       {FrameType::set, {"key", std::string(1000, '\0')}},
                                       {FrameType::wait, {""}}};
    std::string bytes;
    for (const Frame& frame : frames) bytes += encode(frame);
    FrameDecoder decoder(kFrameBytesMax);
    std::vector<Frame> decoded;
    for (const char& byte : bytes) {
        decoder.append(std::span(&byte, 1));
        while (auto frame = decoder.next()) decoded.push_back(*frame);
    }
    EXPECT_EQ(decoded, frames);
}

TEST(RendezvousWire, what_cannot_be_a_frame_is_refused) {
    const std::string good = encode({FrameType::set, {"key", "value"}});
    const auto decode = [](const std::string& bytes) {
        FrameDecoder decoder(kHelloBytesMax);
        decoder.append(bytes);
        return decoder.next();
    };
    ASSERT_TRUE(decode(good));
    const auto expect_refused = [&](std::size_t at, char value) {
        std::string bad = good;
        bad[at] = value;
        EXPECT_THROW(decode(bad), Error) << "byte " << at;
    };
    expect_refused(0, 1);    // Shorter than the head.
    expect_refused(2, 1);    // Longer than allowed.
    expect_refused(4, 2);    // Version.
    expect_refused(5, 0);    // Type.
    expect_refused(5, 10);   // Type.
    expect_refused(6, 1);    // Fewer texts than there are bytes for.
    expect_refused(6, 3);    // More.
    expect_refused(6, 100);  // Too many.
    expect_refused(7, 100);  // A text longer than the frame.
    expect_refused(10, '\x7f');
}

}  // namespace
}  // namespace gruca::comm
