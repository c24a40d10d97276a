#include "net/client_connection.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace gruca::net {
namespace {

constexpr std::size_t kReceiveBytes = 16u << 10;
constexpr std::size_t kTransferPieceBytes = 512u << 10;  // Fewer, larger pieces: less CPU a byte.
// Who expects "100 Continue" sends without it when the server says nothing.
constexpr std::chrono::seconds kContinuePatience{1};

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

std::string server_of(const Origin& origin) {
    return origin.host + ":" + std::to_string(origin.port);
}

Addresses addresses_of(const Origin& origin) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int status =
        ::getaddrinfo(origin.host.c_str(), std::to_string(origin.port).c_str(), &hints, &found);
    if (status == 0) return {found, ::freeaddrinfo};
    throw Error(ErrorCode::unavailable,
                "cannot reach " + server_of(origin) + ": " + ::gai_strerror(status));
}

// An errno when there is no connection.
int connect_within(const UniqueFd& socket, const addrinfo& address,
                   std::chrono::milliseconds time_max, CallWait& wait) {
    if (!socket.is_open()) return errno;
    const int one = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    if (!wait.wait(socket.get(), POLLOUT, time_max)) return ETIMEDOUT;
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    return failure;
}

Error broken() {
    return Error(ErrorCode::unavailable,
                 std::string("the connection broke in mid-call: ") + std::strerror(errno));
}

}  // namespace

ClientConnection::ClientConnection(const Origin& origin, std::chrono::milliseconds time_max,
                                   CallWait& wait)
    : received_(kReceiveBytes) {
    const Addresses addresses = addresses_of(origin);
    int failure = 0;
    for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
        socket_.reset(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        failure = connect_within(socket_, *one, time_max, wait);
        if (failure == 0) return;
    }
    throw Error(ErrorCode::unavailable,
                "cannot reach " + server_of(origin) + ": " + std::strerror(failure));
}

bool ClientConnection::is_idle() const {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

bool ClientConnection::may_be_kept(const HttpAnswer& answer) const {
    return sent_all_ && unread_ == 0 && answer.keeps_connection();
}

ClientConnection::End ClientConnection::exchange(const Call& call, HttpAnswer& answer,
                                                 CallWait& wait) {
    sent_all_ = false;
    uploaded_ = 0;
    if (call.transfer != nullptr && received_.size() < kTransferPieceBytes) {
        received_.resize(kTransferPieceBytes);
    }
    std::optional<End> end = send_body(call, answer, wait);
    // An answer that comes before all is sent is the answer: the rest is not wanted.
    while (!end && !answer.is_whole()) {
        if (!wait.wait(socket_.get(), POLLIN)) return End::too_late;
        end = receive(answer, wait);
    }
    return end.value_or(End::answered);
}

std::optional<ClientConnection::End> ClientConnection::send_body(const Call& call,
                                                                 HttpAnswer& answer,
                                                                 CallWait& wait) {
    const bool uploads = call.transfer != nullptr && call.transfer->upload;
    if (!uploads && call.request.body.size() <= kReceiveBytes) {
        return send(call.head + call.request.body, answer, wait);
    }
    if (const auto end = send(call.head, answer, wait)) return end;
    if (!uploads) return send(call.request.body, answer, wait);
    if (same_header_name(call.request.headers.find("Expect").value_or(""), "100-continue")) {
        if (const auto end = await_continue(answer, wait)) return end;
    }
    return upload(*call.transfer, answer, wait);
}

std::optional<ClientConnection::End> ClientConnection::await_continue(HttpAnswer& answer,
                                                                      CallWait& wait) {
    while (!answer.may_go_on() && !answer.has_head()) {
        if (!wait.wait(socket_.get(), POLLIN, kContinuePatience)) return std::nullopt;
        if (const auto end = receive(answer, wait)) return end;
    }
    return std::nullopt;
}

std::optional<ClientConnection::End> ClientConnection::upload(const HttpTransfer& transfer,
                                                              HttpAnswer& answer, CallWait& wait) {
    std::vector<char> piece(std::min<std::uint64_t>(transfer.upload_bytes, kTransferPieceBytes));
    while (uploaded_ < transfer.upload_bytes && !answer.has_head()) {
        wait.throw_if_cancelled();
        const std::size_t wanted =
            std::min<std::uint64_t>(piece.size(), transfer.upload_bytes - uploaded_);
        const std::size_t count =
            transfer.upload(std::as_writable_bytes(std::span(piece.data(), wanted)));
        if (count == 0 || count > wanted) {
            throw Error(ErrorCode::internal, "an upload's source ends before its length");
        }
        uploaded_ += count;
        sent_all_ = false;
        if (const auto end = send({piece.data(), count}, answer, wait)) return end;
    }
    sent_all_ = sent_all_ && uploaded_ == transfer.upload_bytes;
    return std::nullopt;
}

// Sends until all is sent, or the answer is there; a server that has closed may have answered.
std::optional<ClientConnection::End> ClientConnection::send(std::string_view bytes,
                                                            HttpAnswer& answer, CallWait& wait) {
    while (!bytes.empty() && !answer.has_head()) {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            wait.moved(static_cast<std::uint64_t>(sent));
            bytes.remove_prefix(static_cast<std::size_t>(sent));
            if (bytes.empty()) break;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return std::nullopt;
        } else if (errno != EAGAIN && errno != EINTR) {
            throw broken();
        }
        const auto ready = wait.wait(socket_.get(), POLLOUT | POLLIN);
        if (!ready) return End::too_late;
        if ((*ready & POLLIN) == 0) continue;
        if (const auto end = receive(answer, wait)) return end;
    }
    sent_all_ = bytes.empty();
    return std::nullopt;
}

std::optional<ClientConnection::End> ClientConnection::receive(HttpAnswer& answer, CallWait& wait) {
    wait.throw_if_cancelled();
    if (unread_ == received_.size()) received_.resize(received_.size() * 2);  // A long head.
    const ssize_t count =
        ::recv(socket_.get(), received_.data() + unread_, received_.size() - unread_, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    const bool is_cut_off = count == 0 || (count < 0 && errno == ECONNRESET);
    if (is_cut_off && !answer.has_begun()) return End::cut_off;
    if (count < 0) throw broken();
    if (count == 0) {
        answer.take_end();
        return End::answered;
    }
    wait.moved(static_cast<std::uint64_t>(count));
    unread_ += static_cast<std::size_t>(count);
    const std::size_t used = answer.take({received_.data(), unread_});
    std::memmove(received_.data(), received_.data() + used, unread_ - used);
    unread_ -= used;
    return std::nullopt;
}

}  // namespace gruca::net
