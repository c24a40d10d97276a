#include "agent/remote_shell_wire.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "agent/remote_shell.h"
#include "base/error.h"
#include "net/sigv4_canonical.h"

namespace gruca::agent {
namespace {

constexpr std::size_t kHeadBytes = 5;
constexpr std::size_t kSignatureDigits = 64;
constexpr std::size_t kFrameBytesMax = kCommandBytesMax + kSignatureDigits;
constexpr const char* kSignedAs = "gruca-rsh";

// Returns the bytes read; fewer than asked only at the end of the stream.
std::size_t receive(int socket, char* into, std::size_t size) {
    std::size_t got = 0;
    while (got < size) {
        const ssize_t more = ::recv(socket, into + got, size - got, 0);
        if (more == 0) break;
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) {
            throw Error(ErrorCode::unavailable,
                        std::string("the connection broke: ") + std::strerror(errno));
        }
        got += static_cast<std::size_t>(more);
    }
    return got;
}

}  // namespace

void send_frame(int socket, const Frame& frame) {
    std::string bytes(1, static_cast<char>(frame.kind));
    const auto size = static_cast<std::uint32_t>(frame.bytes.size());
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(size >> shift));
    bytes += frame.bytes;
    for (std::size_t sent = 0; sent < bytes.size();) {
        const ssize_t more = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) {
            throw Error(ErrorCode::unavailable,
                        std::string("the connection broke: ") + std::strerror(errno));
        }
        sent += static_cast<std::size_t>(more);
    }
}

std::optional<Frame> read_frame(int socket) {
    std::array<char, kHeadBytes> head;
    const std::size_t got = receive(socket, head.data(), head.size());
    if (got == 0) return std::nullopt;
    std::uint32_t size = 0;
    for (std::size_t i = 1; i < kHeadBytes; ++i) {
        size = size << 8 | static_cast<unsigned char>(head[i]);
    }
    if (got < kHeadBytes || size > kFrameBytesMax) {
        throw Error(ErrorCode::invalid_argument, "the other side does not speak as a node does");
    }
    Frame frame{.kind = static_cast<FrameKind>(head[0]), .bytes = std::string(size, '\0')};
    if (receive(socket, frame.bytes.data(), size) < size) {
        throw Error(ErrorCode::unavailable, "the connection broke");
    }
    return frame;
}

std::string sign_command(const std::string& secret, const std::string& challenge,
                         const std::string& command) {
    return net::signature_of(secret, "", {.region = "", .service = kSignedAs},
                             std::to_string(challenge.size()) + "\n" + challenge + command);
}

bool is_same(const std::string& one, const std::string& other) {
    if (one.size() != other.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        difference |= static_cast<unsigned>(one[i] ^ other[i]);
    }
    return difference == 0;
}

}  // namespace gruca::agent
