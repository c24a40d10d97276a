#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "agent/container_files.h"
#include "agent/remote_shell.h"
#include "agent/remote_shell_wire.h"
#include "base/boundary.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kFailed = 255;  // As ssh ends when it is not the command that failed.
constexpr milliseconds kRetryEvery{200};
constexpr seconds kSayEvery{30};
constexpr seconds kProbeEvery{15};  // Of a silent connection.

struct Wanted {
    std::string host;
    std::string command;  // Empty: wait for the host's end.
};

// Options are ssh's, and say nothing here.
Wanted read_arguments(const std::vector<std::string>& arguments) {
    Wanted wanted;
    for (const std::string& word : arguments) {
        if (wanted.host.empty() && word.starts_with('-')) continue;
        if (wanted.host.empty()) {
            wanted.host = word;
        } else {
            wanted.command += (wanted.command.empty() ? "" : " ") + word;
        }
    }
    if (wanted.host.empty()) {
        throw Error(ErrorCode::invalid_argument, "usage: gruca-rsh <host> [command]");
    }
    if (wanted.command.size() > kCommandBytesMax) {
        throw Error(ErrorCode::invalid_argument,
                    "the command has more than " + human_bytes(kCommandBytesMax));
    }
    return wanted;
}

sockaddr_in find_host(const std::string& host, std::uint16_t port) {
    addrinfo hints = {};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, [](addrinfo* list) {
        if (list != nullptr) ::freeaddrinfo(list);
    });
    if (status != 0) {
        throw Error(ErrorCode::not_found,
                    "no node of this job is called " + host + ": " + ::gai_strerror(status));
    }
    sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    address.sin_port = htons(port);
    return address;
}

// A node that is not there any more, with all that it ran, may never say so.
void notice_silence(int socket) {
    const int on = 1, every = static_cast<int>(kProbeEvery.count()), probes = 3;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &every, sizeof every);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

// A node may still be bringing its data when another has begun.
UniqueFd connect_to(const std::string& host, std::uint16_t port) {
    const sockaddr_in address = find_host(host, port);
    const SystemClock clock;
    const auto begun = clock.steady_now();
    auto say_at = begun + kSayEvery;
    for (;;) {
        UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0) {
            notice_silence(socket.get());
            return socket;
        }
        const std::string why = std::strerror(errno);
        const auto now = clock.steady_now();
        if (now - begun > kPeerPatience) {
            throw Error(ErrorCode::deadline_exceeded, host + " has not come up in " +
                                                          std::to_string(kPeerPatience.count()) +
                                                          " minutes: " + why);
        }
        if (now > say_at) {
            ::dprintf(STDERR_FILENO, "gruca-rsh: still waiting for %s: %s\n", host.c_str(),
                      why.c_str());
            say_at = now + kSayEvery;
        }
        std::this_thread::sleep_for(kRetryEvery);
    }
}

int run_there(int socket, const Wanted& wanted, const std::string& secret) {
    const std::optional<Frame> challenge = read_frame(socket);
    if (!challenge || challenge->kind != FrameKind::challenge) {
        throw Error(ErrorCode::invalid_argument, wanted.host + " does not answer as a node does");
    }
    send_frame(socket,
               {.kind = FrameKind::request,
                .bytes = sign_command(secret, challenge->bytes, wanted.command) + wanted.command});
    while (const std::optional<Frame> frame = read_frame(socket)) {
        switch (frame->kind) {
            case FrameKind::output:
                write_all(STDOUT_FILENO, bytes_of(frame->bytes));
                break;
            case FrameKind::error:
                write_all(STDERR_FILENO, bytes_of(frame->bytes));
                break;
            case FrameKind::exit_code:
                return static_cast<int>(parse_int(frame->bytes).value_or(kFailed));
            default:
                throw Error(ErrorCode::permission_denied,
                            wanted.host + " refuses: " + frame->bytes);
        }
    }
    if (wanted.command.empty()) return 0;
    throw Error(ErrorCode::unavailable, wanted.host + " has ended before the command");
}

}  // namespace

int run_remote_shell(const std::vector<std::string>& arguments) {
    int code = kFailed;
    const std::optional<Error> failure = run_guarded([&] {
        const Wanted wanted = read_arguments(arguments);
        const std::string secret(trim(read_file(std::filesystem::path(kMl) / kRemoteShellSecret)));
        const UniqueFd socket = connect_to(wanted.host, kRemoteShellPort);
        const std::optional<Error> broken =
            run_guarded([&] { code = run_there(socket.get(), wanted, secret); });
        if (!broken) return;
        // Whether the end of a node arrives as such or as a broken connection is chance.
        if (wanted.command.empty() && broken->code() == ErrorCode::unavailable) {
            code = 0;
        } else {
            throw Error(*broken);
        }
    });
    if (failure) ::dprintf(STDERR_FILENO, "gruca-rsh: %s\n", failure->message().c_str());
    return code;
}

}  // namespace gruca::agent
