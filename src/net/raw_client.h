// net/raw_client.h
//
// For tests: one TCP connection to a server on this machine that sends bytes, not requests. What
// does not come within 20 seconds is a failure of the test.
//
// Owned by one thread.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace gruca::net {

class RawClient {
  public:
    explicit RawClient(std::uint16_t port) : RawClient() { connect(port); }
    RawClient() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        // A test that would wait for ever fails instead.
        const timeval patience{.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }

    void connect(std::uint16_t port, const char* address = "127.0.0.1") {
        ASSERT_TRUE(try_connect(port, address)) << address;
    }
    bool try_connect(std::uint16_t port, const char* text) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        ::inet_pton(AF_INET, text, &address.sin_addr);
        return ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }

    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;  // The server has closed: what it answered says why.
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }

    // One response: the head, and as much body as it promises.
    std::string receive() {
        while (buffer_.find("\r\n\r\n") == std::string::npos) {
            if (!receive_some()) return std::exchange(buffer_, "");
        }
        const std::size_t head = buffer_.find("\r\n\r\n") + 4;
        const std::string lower = to_lower(buffer_.substr(0, head));
        const std::size_t at = lower.find("content-length: ");
        const std::size_t length = at == std::string::npos ? 0 : std::stoul(lower.substr(at + 16));
        while (buffer_.size() < head + length && receive_some()) {
        }
        std::string response = buffer_.substr(0, head + length);
        buffer_.erase(0, head + length);
        return response;
    }

    // Until `text` has come; what came up to its end.
    std::string receive_until(std::string_view text) {
        while (buffer_.find(text) == std::string::npos) {
            if (!receive_some()) return std::exchange(buffer_, "");
        }
        const std::size_t end = buffer_.find(text) + text.size();
        std::string seen = buffer_.substr(0, end);
        buffer_.erase(0, end);
        return seen;
    }

    // Everything until the server closes.
    std::string receive_all() {
        while (receive_some()) {
        }
        return std::exchange(buffer_, "");
    }

    // False once the server has closed: for sending on until it does.
    bool try_send(std::string_view bytes) {
        return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
    }

    // Sends up to `bytes_max` bytes for as long as nobody has to read them.
    void send_only_what_fits(std::size_t bytes_max) {
        const std::string piece(64u << 10, 'x');
        int patience = 50;  // Rounds of 10 ms in which nothing went.
        while (sent_bytes_ < bytes_max && patience > 0) {
            const auto sent =
                ::send(fd_.get(), piece.data(), std::min(piece.size(), bytes_max - sent_bytes_),
                       MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent > 0) {
                sent_bytes_ += static_cast<std::size_t>(sent);
                patience = 50;
                continue;
            }
            pollfd writable{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
            if (::poll(&writable, 1, 10) == 0) --patience;
        }
    }
    std::size_t sent_bytes() const { return sent_bytes_; }  // By send_only_what_fits.

    // Waits, reading nothing, until the server has reset the connection.
    bool wait_for_reset() const {
        pollfd reset{.fd = fd_.get(), .events = 0, .revents = 0};
        return ::poll(&reset, 1, 20000) == 1 && (reset.revents & POLLERR) != 0;
    }

    // Whether something has come, be it the end.
    bool has_more() const {
        pollfd readable{.fd = fd_.get(), .events = POLLIN, .revents = 0};
        return !buffer_.empty() || ::poll(&readable, 1, 0) == 1;
    }

    void finish_sending() { ::shutdown(fd_.get(), SHUT_WR); }
    void close() { fd_.reset(); }

  private:
    bool receive_some() {
        char bytes[65536];
        const auto n = ::recv(fd_.get(), bytes, sizeof bytes, 0);
        if (n < 0 && errno != ECONNRESET) ADD_FAILURE() << "nothing received in time";
        if (n <= 0) return false;
        buffer_.append(bytes, static_cast<std::size_t>(n));
        return true;
    }

    UniqueFd fd_;
    std::string buffer_;
    std::size_t sent_bytes_ = 0;
};

}  // namespace gruca::net
