#include "comm/gloo_comm.h"

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "comm/comm_contract.h"
#include "comm/rendezvous.h"

namespace gruca::comm {
namespace {

using std::chrono::milliseconds;

// Every rank on an address of its own, as on machines of their own.
GlooOptions options_for(int rank, int size, std::uint16_t port) {
    return {.rank = rank,
            .size = size,
            .own_host = "127.64.0." + std::to_string(1 + rank),
            .rendezvous = {"127.64.0.1", port},
            .secret = "job-1",
            .timeout = std::chrono::seconds(60),
            .join_timeout = std::chrono::seconds(60)};
}

RendezvousServer::Options server_options(int size) {
    return {.endpoint = {"127.64.0.1", 0}, .size = size, .secret = "job-1"};
}

RendezvousServer make_server(int size) {
    return RendezvousServer(server_options(size));
}

// Runs the ranks given as threads of this process, each with a context of its own.
void run_threads(const std::vector<GlooOptions>& ranks, const std::function<void(Comm&)>& body) {
    std::mutex mutex;
    std::optional<Error> cause;  // Guarded by mutex.
    {
        std::vector<std::jthread> threads;
        for (const GlooOptions& options : ranks) {
            threads.emplace_back([&] {
                const auto error = run_guarded([&] {
                    const auto comm = make_gloo_comm(options);
                    body(*comm);
                });
                const std::lock_guard lock(mutex);
                if (error && !cause) cause = *error;
            });
        }
    }
    if (cause) throw Error(*cause);
}

void run_gloo_ranks(int size, const std::function<void(Comm&)>& body) {
    const auto server = make_server(size);
    std::vector<GlooOptions> ranks;
    for (int rank = 0; rank < size; ++rank) {
        ranks.push_back(options_for(rank, size, server.port()));
    }
    run_threads(ranks, body);
}

// A rank in a process of its own, which can be killed. It joins, takes part in one barrier, and
// then only exists. As rank 0 it has the rendezvous, too.
class OtherProcess {
  public:
    OtherProcess(int rank, int size) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            throw_errno("cannot make a pair of sockets");
        }
        pid_ = fork();
        if (pid_ == 0) be_rank(rank, size, ends[0]);
        ::close(ends[0]);
        port_.reset(ends[1]);
    }
    ~OtherProcess() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }

    void tell_port(std::uint16_t port) { send_port(port_.get(), port); }
    std::uint16_t hear_port() { return receive_port(port_.get()); }
    void signal(int number) {
        kill(pid_, number);
        // A stopped process is reported too; a killed one is left for the destructor.
        siginfo_t info;
        waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOWAIT);
    }

  private:
    static void send_port(int fd, std::uint16_t port) {
        write_all(fd, std::as_bytes(std::span(&port, 1)));
    }
    static std::uint16_t receive_port(int fd) {
        std::uint16_t port = 0;
        read_full(fd, std::as_writable_bytes(std::span(&port, 1)));
        return port;
    }
    [[noreturn]] static void be_rank(int rank, int size, int port_fd) {
        const auto error = run_guarded([&] {
            std::optional<RendezvousServer> server;
            std::uint16_t port = 0;
            if (rank == 0) {
                server.emplace(server_options(size));
                port = server->port();
                send_port(port_fd, port);
            } else {
                port = receive_port(port_fd);
            }
            const auto comm = make_gloo_comm(options_for(rank, size, port));
            comm->barrier();
            while (true) pause();
        });
        _exit(error ? 1 : 0);
    }

    pid_t pid_;
    UniqueFd port_;
};

// What each of these ranks gets from a sum after the other one got a signal.
std::vector<Error> errors_after(int signal_number, OtherProcess& other,
                                const std::vector<GlooOptions>& ranks) {
    std::mutex mutex;
    std::vector<Error> errors;
    std::atomic<std::size_t> past_barrier = 0;
    run_threads(ranks, [&](Comm& comm) {
        comm.barrier();
        if (++past_barrier == ranks.size()) other.signal(signal_number);
        std::vector<float> values(100'000, 1.0f);
        const auto error = run_guarded([&] { comm.all_reduce_sum(std::span(values)); });
        EXPECT_TRUE(run_guarded([&] { comm.barrier(); })) << "the group went on";
        const std::lock_guard lock(mutex);
        if (error) errors.push_back(*error);
        comm.abort("a peer is lost");
    });
    return errors;
}

// Every survivor throws; the later ones may be freed by the abort of the first.
void expect_that_all_have_lost(const std::string& rank, const std::vector<Error>& errors) {
    ASSERT_EQ(errors.size(), 2u);
    for (const Error& error : errors) {
        EXPECT_THAT(error.code(), testing::AnyOf(ErrorCode::unavailable, ErrorCode::cancelled))
            << error.what();
    }
    EXPECT_THAT(errors[0].message(), testing::HasSubstr(rank));
}

TEST(GlooComm, every_survivor_learns_that_a_rank_was_killed) {
    OtherProcess other(2, 3);
    const auto server = make_server(3);
    other.tell_port(server.port());
    expect_that_all_have_lost("rank 2", errors_after(SIGKILL, other,
                                                     {options_for(0, 3, server.port()),
                                                      options_for(1, 3, server.port())}));
}

TEST(GlooComm, every_survivor_learns_that_the_rank_with_the_rendezvous_was_killed) {
    OtherProcess other(0, 3);
    const std::uint16_t port = other.hear_port();
    expect_that_all_have_lost(
        "rank 0", errors_after(SIGKILL, other, {options_for(1, 3, port), options_for(2, 3, port)}));
}

// Says where rank 1 listens, so that rank 0 waits for it to connect, and dies.
void die_before_connecting(std::uint16_t port) {
    RendezvousClient client({.server = {"127.64.0.1", port},
                             .rank = 1,
                             .size = 2,
                             .secret = "job-1",
                             .join_timeout = std::chrono::seconds(60),
                             .on_ending = {}});
    const std::string theirs = client.get("gloo/addresses/0", std::chrono::seconds(60));
    // Of two ranks the one with the greater address connects.
    for (int attempt = 0; attempt < 1000; ++attempt) {
        const auto device =
            gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.64.0.2"));
        const auto pairs = device->createContext(1, 2);
        const std::vector<char> mine = pairs->createPair(0)->address().bytes();
        if (std::memcmp(mine.data(), theirs.data(), theirs.size()) < 0) continue;
        client.set("gloo/addresses/1", std::string_view(mine.data(), mine.size()));
        ::usleep(100'000);
        ::kill(::getpid(), SIGKILL);
    }
}

TEST(GlooComm, a_rank_that_dies_while_the_others_connect_to_it_ends_them) {
    std::array<int, 2> ends;
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t other = ::fork();  // Before any thread.
    if (other == 0) {
        run_guarded([&] {
            std::uint16_t port = 0;
            if (::read(ends[0], &port, sizeof port) == sizeof port) die_before_connecting(port);
        });
        ::_exit(1);
    }
    const auto server = make_server(2);
    const std::uint16_t port = server.port();
    ASSERT_EQ(::write(ends[1], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    const auto error = run_guarded([&] { make_gloo_comm(options_for(0, 2, port)); });
    int status = 0;
    ::waitpid(other, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message(), testing::HasSubstr("rank 1"));
    EXPECT_THAT(error->message(), testing::Not(testing::HasSubstr("cannot connect")));
}

TEST(GlooComm, a_silent_rank_is_named_when_time_is_up) {
    OtherProcess other(1, 2);
    const auto server = make_server(2);
    other.tell_port(server.port());
    GlooOptions options = options_for(0, 2, server.port());
    options.timeout = milliseconds(200);
    const auto errors = errors_after(SIGSTOP, other, {options});
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].code(), ErrorCode::deadline_exceeded) << errors[0].what();
    EXPECT_THAT(errors[0].message(), testing::HasSubstr("rank 1"));
    EXPECT_THAT(errors[0].message(), testing::HasSubstr("all_reduce_sum"));
}

TEST(GlooComm, ranks_that_call_different_collectives_fail) {
    const auto server = make_server(2);
    std::vector<GlooOptions> ranks = {options_for(0, 2, server.port()),
                                      options_for(1, 2, server.port())};
    for (GlooOptions& options : ranks) options.timeout = milliseconds(200);
    std::atomic<int> failed = 0;
    run_threads(ranks, [&](Comm& comm) {
        std::vector<double> doubles(10, 1.0);
        std::vector<float> floats(20, 1.0f);
        const auto error = run_guarded([&] {
            if (comm.rank() == 0) comm.all_reduce_sum(std::span(doubles));
            if (comm.rank() == 1) comm.all_reduce_sum(std::span(floats));
        });
        EXPECT_TRUE(error);
        if (error) ++failed;
    });
    EXPECT_EQ(failed, 2);
}

TEST(GlooComm, ranks_of_another_job_are_refused) {
    const auto server = make_server(1);
    GlooOptions options = options_for(0, 1, server.port());
    options.secret = "job-2";
    options.join_timeout = milliseconds(50);
    const auto error = run_guarded([&] { make_gloo_comm(options); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::permission_denied) << error->what();
}

TEST(GlooComm, a_rank_that_never_comes_is_an_error_for_the_others) {
    const auto server = make_server(2);
    GlooOptions options = options_for(0, 2, server.port());
    options.join_timeout = milliseconds(100);
    const auto error = run_guarded([&] { make_gloo_comm(options); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::deadline_exceeded) << error->what();
}

}  // namespace

std::vector<Implementation> gloo_implementations() {
    return {{"gloo", run_gloo_ranks}};
}

}  // namespace gruca::comm
