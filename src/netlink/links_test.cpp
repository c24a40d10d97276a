// In network namespaces of the test's own, so that the machine's network is left alone. Without the
// right to make one there is nothing to test, and the test says so.

#include "netlink/links.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/subprocess.h"

namespace gruca::netlink {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint32_t kGateway = 0x0a090801;  // 10.9.8.1
constexpr std::uint32_t kNode = 0x0a090802;

class LinksTest : public testing::Test {
  protected:
    void SetUp() override {
        if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no right to make a network namespace";
    }
    // A process that waits in a network namespace of its own until it is destroyed.
    static pid_t start_node() {
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::unshare(CLONE_NEWNET);
            ::kill(::getpid(), SIGSTOP);
            for (;;) ::pause();
        }
        ::waitpid(pid, nullptr, WUNTRACED);
        return pid;
    }
    static void end_node(pid_t pid) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    static std::string in(pid_t node, const std::string& command) {
        return run({.argv = {"nsenter", "--net", "--target", std::to_string(node), "sh", "-c",
                             command + " 2>&1"}})
            .output;
    }
};

TEST_F(LinksTest, a_bridge_is_made_once_and_keeps_its_address_and_routes_to_it) {
    const Links links;
    EXPECT_FALSE(links.exists("gruca-t"));
    EXPECT_FALSE(links.address_of("gruca-t"));
    for (int i = 0; i < 2; ++i) {
        links.make_bridge("gruca-t", InterfaceAddress{.address = kGateway, .prefix = 24});
    }
    EXPECT_TRUE(links.exists("gruca-t"));
    EXPECT_EQ(links.address_of("gruca-t")->address, kGateway);
    EXPECT_EQ(links.address_of("gruca-t")->prefix, 24);
    EXPECT_THAT(links.routes(), Contains(spec::parse_subnet("10.9.8.0/24").value()));
    for (int i = 0; i < 2; ++i) links.remove("gruca-t");
    EXPECT_FALSE(links.exists("gruca-t"));
    EXPECT_THAT(links.routes(), Not(Contains(spec::parse_subnet("10.9.8.0/24").value())));
}

TEST_F(LinksTest, a_node_gets_eth0_an_address_and_a_way_out_and_leaves_nothing) {
    const Links links;
    links.make_bridge("gruca-t", InterfaceAddress{.address = kGateway, .prefix = 24});
    const pid_t node = start_node();
    links.connect("gruca-t", kNode, node);
    EXPECT_THAT(in(node, "ip link"), HasSubstr("eth0@"));
    EXPECT_THAT(in(node, "ip link"), HasSubstr("02:67:0a:09:08:02"));
    const pid_t inside = ::fork();
    if (inside == 0) {
        const std::string path = "/proc/" + std::to_string(node) + "/ns/net";
        const UniqueFd net = open_file(path, O_RDONLY);
        ::setns(net.get(), CLONE_NEWNET);
        Links().set_up_node({.address = kNode, .prefix = 24}, kGateway);
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(inside, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_THAT(in(node, "ip -4 -o addr show eth0"), HasSubstr("10.9.8.2/24"));
    EXPECT_THAT(in(node, "ip route"), HasSubstr("default via 10.9.8.1 dev eth0"));
    EXPECT_THAT(in(node, "ip -4 -o addr show lo"), HasSubstr("127.0.0.1/8"));
    end_node(node);
    // The next one with the address may come before the kernel has cleared away the first.
    const pid_t next = start_node();
    links.connect("gruca-t", kNode, next);
    EXPECT_THAT(in(next, "ip link"), HasSubstr("eth0@"));
    end_node(next);
}

// Runs `body` in the network of the node.
template <class Body>
int run_in(pid_t node, Body body) {
    const pid_t inside = ::fork();
    if (inside == 0) {
        const UniqueFd net = open_file("/proc/" + std::to_string(node) + "/ns/net", O_RDONLY);
        ::setns(net.get(), CLONE_NEWNET);
        body();
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(inside, &status, 0);
    return status;
}

// At kNode, until somebody says "end"; prints all that it hears.
constexpr const char* kListen = R"py(python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('10.9.8.2', 7000))
s.settimeout(20)
heard = ''
while 'end' not in heard: heard += s.recv(99).decode() + ' '
print(heard)")py";

// Says a word to who listens at kNode, by its routes and then around them.
std::string say(const std::string& word) {
    return R"py(python3 -c "
import socket
for around in (False, True):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if around: s.setsockopt(socket.SOL_SOCKET, 25, b'eth0')  # SO_BINDTODEVICE
    try: s.sendto(b')py" +
           word + R"py(', ('10.9.8.2', 7000))
    except OSError: pass")py";
}

TEST_F(LinksTest, an_isolated_node_and_its_peer_hear_each_other_and_nobody_else) {
    constexpr std::uint32_t kPeer = 0x0a090803, kStranger = 0x0a090804;
    const Links links;
    links.make_bridge("gruca-t", std::nullopt);
    const std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> nodes = {
        {kNode, {kPeer}}, {kPeer, {kNode}}, {kStranger, {}}};
    std::vector<pid_t> pids;
    for (const auto& [address, peers] : nodes) {
        pids.push_back(start_node());
        links.connect("gruca-t", address, pids.back());
        ASSERT_EQ(
            run_in(
                pids.back(),
                [&] { Links().set_up_isolated_node({.address = address, .prefix = 24}, peers); }),
            0);
    }
    EXPECT_THAT(in(pids[0], "ip route"), HasSubstr("10.9.8.3 dev eth0"));
    EXPECT_THAT(in(pids[0], "ip route"), Not(HasSubstr("/24")));
    std::string heard;
    std::jthread listener([&] { heard = in(pids[0], kListen); });
    while (in(pids[0], "cat /proc/net/udp").find(":1B58") == std::string::npos) ::usleep(2000);
    in(pids[2], say("stranger"));
    in(pids[1], say("end"));
    listener.join();
    EXPECT_THAT(heard, HasSubstr("end"));
    EXPECT_THAT(heard, Not(HasSubstr("stranger")));
    for (const pid_t pid : pids) end_node(pid);
}

TEST_F(LinksTest, a_bridge_that_is_gone_is_named) {
    const Links links;
    try {
        links.connect("gruca-t", kNode, ::getpid());
        FAIL() << "connected to nothing";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unavailable);
        EXPECT_THAT(error.what(), HasSubstr("gruca-t"));
    }
}

}  // namespace
}  // namespace gruca::netlink
