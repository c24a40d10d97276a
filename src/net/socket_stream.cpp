#include "net/socket_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "net/http_head.h"

namespace gruca::net {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::size_t kChunkedPieceBytes = 64u << 10;
constexpr std::uint64_t kDrainBytesMax = 64u << 10;  // Dropped to keep a connection.
constexpr std::size_t kSendfileBytesMax = 1u << 20;

iovec piece(std::string_view text) {
    return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

void make_non_blocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) throw_errno("fcntl O_NONBLOCK");
}

}  // namespace

SocketStream::SocketStream(StreamRequest request, Patience patience)
    : patience_(patience),
      socket_(std::move(request.socket)),
      head_(std::move(request.head)),
      received_(std::move(request.received)),
      body_bytes_(request.body_bytes),
      body_left_(request.body_bytes.value_or(0)),
      body_ended_(request.body_bytes == 0u),
      owes_continue_(request.expects_continue && !body_ended_),
      keeps_alive_(request.keeps_alive),
      knows_chunks_(request.knows_chunks),
      patience_left_(patience.time) {
    make_non_blocking(socket_.get());
}

void SocketStream::cut() {
    is_cut_ = true;
    ::shutdown(socket_.get(), SHUT_RDWR);
}

void SocketStream::fail_cut_off() {
    broken_ = true;
    throw Error(ErrorCode::unavailable, is_cut_ ? "the server is stopping"
                                                : "the client cut the connection in mid-transfer");
}

void SocketStream::moved(std::uint64_t bytes) {
    moved_ += bytes;
    if (moved_ < patience_.bytes) return;
    moved_ = 0;
    patience_left_ = patience_.time;
}

// Who does not read must not have the kernel keep his answer for him after the connection is
// closed.
void SocketStream::drop_unsent() {
    const linger none{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

void SocketStream::wait(short events) {
    if (!waits_) {
        broken_ = true;
        drop_unsent();
        throw Error(ErrorCode::unavailable, "the client leaves no room for its refusal");
    }
    pollfd waited{.fd = socket_.get(), .events = events, .revents = 0};
    const auto before = clock_.steady_now();
    const int ready = ::poll(&waited, 1, static_cast<int>(patience_left_.count()));
    patience_left_ -= std::chrono::duration_cast<Duration>(clock_.steady_now() - before);
    if (ready < 0 && errno != EINTR) throw_errno("poll");
    if (ready != 0 && patience_left_ > Duration(0)) return;
    broken_ = true;
    drop_unsent();
    throw Error(ErrorCode::unavailable,
                fmt::format("the client moved less than {} in {} s", human_bytes(patience_.bytes),
                            std::chrono::duration<double>(patience_.time).count()));
}

// Reading.

std::size_t SocketStream::read(std::span<std::byte> into) {
    if (body_ended_ || into.empty()) return 0;
    say_continue();
    return body_bytes_ ? read_plain(into) : read_chunked(into);
}

void SocketStream::say_continue() {
    if (!std::exchange(owes_continue_, false)) return;
    if (received_at_ == received_.size() && !begun_) send_text(kContinue, false);
}

std::size_t SocketStream::read_plain(std::span<std::byte> into) {
    const std::size_t wanted = std::min<std::uint64_t>(into.size(), body_left_);
    std::size_t count = std::min(wanted, received_.size() - received_at_);
    if (count > 0) {
        std::memcpy(into.data(), received_.data() + received_at_, count);
        received_at_ += count;
    } else {
        count = receive(into.first(wanted));
    }
    body_left_ -= count;
    body_ended_ = body_left_ == 0;
    return count;
}

std::size_t SocketStream::read_chunked(std::span<std::byte> into) {
    for (;;) {
        if (received_at_ == received_.size()) {
            received_.resize(kChunkedPieceBytes);
            received_at_ = received_.size();  // Nothing is there until it is received.
            received_.resize(receive(std::as_writable_bytes(std::span(received_))));
            received_at_ = 0;
        }
        // No more than fits is shown, so that what is data fits.
        std::string_view input = std::string_view(received_).substr(received_at_, into.size());
        const std::size_t shown = input.size();
        const ChunkedReader::What what = chunks_.next(input);
        received_at_ += shown - input.size();
        if (what == ChunkedReader::What::data) {
            std::memcpy(into.data(), chunks_.data().data(), chunks_.data().size());
            return chunks_.data().size();
        }
        if (what == ChunkedReader::What::end) {
            body_ended_ = true;
            return 0;
        }
        if (what == ChunkedReader::What::malformed) {
            broken_ = true;
            throw Error(ErrorCode::invalid_argument, chunks_.fault());
        }
    }
}

std::size_t SocketStream::receive(std::span<std::byte> into) {
    for (;;) {
        const ssize_t count = ::recv(socket_.get(), into.data(), into.size(), 0);
        if (count > 0) {
            moved(static_cast<std::uint64_t>(count));
            return static_cast<std::size_t>(count);
        }
        if (count < 0 && errno == EINTR) continue;
        if (count == 0 || errno != EAGAIN) fail_cut_off();
        wait(POLLIN);
    }
}

// Whether what is left of the body can be dropped without waiting for it. It is taken from the
// kernel to know.
bool SocketStream::rest_has_come() {
    if (body_ended_) return true;
    if (!body_bytes_ || body_left_ > kDrainBytesMax || owes_continue_) return false;
    const auto left = static_cast<std::size_t>(body_left_);
    std::size_t come = received_.size() - received_at_;
    if (come < left) received_.resize(received_at_ + left);
    while (come < left) {
        const ssize_t count =
            ::recv(socket_.get(), received_.data() + received_at_ + come, left - come, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            received_.resize(received_at_ + come);
            return false;
        }
        come += static_cast<std::size_t>(count);
    }
    return true;
}

void SocketStream::drain() {
    std::array<std::byte, 4096> dropped;
    while (read(dropped) > 0) {
    }
}

// Answering.

void SocketStream::send(HttpResponse response) {
    const std::string body = std::move(response.body);
    begin(std::move(response), body.size());
    write(std::as_bytes(std::span(body)));
}

void SocketStream::refuse(HttpResponse response) {
    waits_ = false;
    keeps_alive_ = false;
    send(std::move(response));
}

void SocketStream::begin(HttpResponse head, std::optional<std::uint64_t> bytes) {
    CHECK(!begun_, "a request is answered twice");
    if (!is_safe(head.headers)) {
        throw Error(ErrorCode::internal, "a response header has an illegal character");
    }
    begun_ = true;
    patience_left_ = patience_.time;
    drops_answer_ = head_.method == "HEAD" || !may_have_body(head.status);
    answer_left_ = bytes;
    answer_in_chunks_ = !bytes && knows_chunks_;
    const bool ends_by_closing = !bytes && !knows_chunks_;
    closes_ = !keeps_alive_ || ends_by_closing || !rest_has_come();
    unsent_ =
        answer_head(head, {.bytes = bytes, .in_chunks = answer_in_chunks_, .closes = closes_});
}

// True when these bytes of the answer are to be sent.
bool SocketStream::counts(std::uint64_t bytes) {
    CHECK(begun_, "an answer is written before it begins");
    if (answer_left_) {
        if (bytes > *answer_left_) {
            broken_ = true;
            throw Error(ErrorCode::internal, "an answer is longer than it says");
        }
        *answer_left_ -= bytes;
    }
    return bytes > 0 && !drops_answer_;
}

void SocketStream::write(std::span<const std::byte> bytes) {
    if (!counts(bytes.size())) return;
    const std::string head = std::exchange(unsent_, "");
    const std::string size = answer_in_chunks_ ? fmt::format("{:x}\r\n", bytes.size()) : "";
    send_pieces(
        {piece(head), piece(size), piece(text_of(bytes)), piece(answer_in_chunks_ ? "\r\n" : "")},
        false);
}

void SocketStream::write_file(int fd, std::uint64_t offset, std::uint64_t bytes) {
    if (!counts(bytes)) return;
    std::string before = std::exchange(unsent_, "");
    if (answer_in_chunks_) before += fmt::format("{:x}\r\n", bytes);
    send_text(before, true);
    send_range(fd, offset, bytes);
    if (answer_in_chunks_) send_text("\r\n", false);
}

void SocketStream::send_text(std::string_view text, bool more_follows) {
    send_pieces({piece(text)}, more_follows);
}

void SocketStream::send_pieces(Pieces pieces, bool more_follows) {
    const int flags = MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0);
    std::size_t first = 0;
    for (;;) {
        while (first < pieces.size() && pieces[first].iov_len == 0) ++first;
        if (first == pieces.size()) return;
        msghdr message{};
        message.msg_iov = &pieces[first];
        message.msg_iovlen = pieces.size() - first;
        const ssize_t sent = ::sendmsg(socket_.get(), &message, flags);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno != EAGAIN) fail_cut_off();
        if (sent < 0) {
            wait(POLLOUT);
            continue;
        }
        moved(static_cast<std::uint64_t>(sent));
        auto left = static_cast<std::size_t>(sent);
        for (iovec& part : std::span(pieces).subspan(first)) {
            const std::size_t taken = std::min(left, part.iov_len);
            part.iov_base = static_cast<char*>(part.iov_base) + taken;
            part.iov_len -= taken;
            left -= taken;
        }
    }
}

void SocketStream::send_range(int fd, std::uint64_t offset, std::uint64_t bytes) {
    auto at = static_cast<off_t>(offset);
    while (bytes > 0) {
        const ssize_t sent =
            ::sendfile(socket_.get(), fd, &at, std::min<std::uint64_t>(bytes, kSendfileBytesMax));
        if (sent > 0) {
            moved(static_cast<std::uint64_t>(sent));
            bytes -= static_cast<std::uint64_t>(sent);
        } else if (sent == 0) {
            broken_ = true;
            throw Error(ErrorCode::data_loss,
                        fmt::format("a file ends {} bytes before its range does", bytes));
        } else if (errno == EAGAIN) {
            wait(POLLOUT);
        } else if (errno == EPIPE || errno == ECONNRESET) {
            fail_cut_off();
        } else if (errno != EINTR) {
            broken_ = true;
            throw_errno("cannot send a file");
        }
    }
}

SocketStream::End SocketStream::finish(bool handler_failed) {
    if (broken_ || (handler_failed && begun_)) return End::broken;
    if (!begun_) send(plain_response(500, "internal error"));
    if (answer_left_.value_or(0) > 0 && !drops_answer_) return End::broken;
    if (answer_in_chunks_ && !drops_answer_) unsent_ += "0\r\n\r\n";
    send_text(std::exchange(unsent_, ""), false);
    if (closes_) return End::lingers;
    drain();  // It is all here.
    return End::kept;
}

}  // namespace gruca::net
