#include "comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "base/error.h"

namespace gruca::comm {
namespace {

constexpr int kBacklog = 256;

sockaddr_in resolve_address(const Endpoint& endpoint) {
    addrinfo hints = {};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int status = getaddrinfo(endpoint.address.c_str(), nullptr, &hints, &found);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(
        found, [](addrinfo* list) { freeaddrinfo(list); });
    if (status != 0) {
        throw Error(ErrorCode::not_found, "cannot find the address of host " + endpoint.address +
                                              ": " + gai_strerror(status));
    }
    sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    address.sin_port = htons(endpoint.port);
    return address;
}

UniqueFd open_socket(int more_flags) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | more_flags, 0));
    if (!fd.is_open()) throw_errno("cannot open a socket");
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return fd;
}

const sockaddr* generic(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
    return endpoint.address + ":" + std::to_string(endpoint.port);
}

UniqueFd listen_on(const Endpoint& endpoint) {
    const sockaddr_in address = resolve_address(endpoint);
    UniqueFd fd = open_socket(SOCK_NONBLOCK);
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd.get(), generic(address), sizeof address) != 0 || listen(fd.get(), kBacklog) != 0) {
        throw_errno("cannot listen on " + to_string(endpoint));
    }
    return fd;
}

std::uint16_t port_of(const UniqueFd& socket) {
    sockaddr_in address = {};
    socklen_t bytes = sizeof address;
    if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
        throw_errno("cannot read the port of a socket");
    }
    return ntohs(address.sin_port);
}

std::optional<UniqueFd> try_connect(const Endpoint& endpoint, std::chrono::milliseconds patience) {
    const sockaddr_in address = resolve_address(endpoint);
    UniqueFd fd = open_socket(SOCK_NONBLOCK);
    if (connect(fd.get(), generic(address), sizeof address) != 0) {
        if (errno != EINPROGRESS) return std::nullopt;
        pollfd wanted = {.fd = fd.get(), .events = POLLOUT, .revents = 0};
        if (poll(&wanted, 1, static_cast<int>(patience.count())) != 1) return std::nullopt;
        int error = 0;
        socklen_t bytes = sizeof error;
        getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
        if (error != 0) return std::nullopt;
    }
    const int flags = fcntl(fd.get(), F_GETFL);
    if (fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) throw_errno("cannot set up a socket");
    return fd;
}

std::string resolve(const std::string& host) {
    const sockaddr_in address = resolve_address({.address = host});
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    return text;
}

}  // namespace gruca::comm
