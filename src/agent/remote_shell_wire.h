// agent/remote_shell_wire.h
//
// The bytes between gruca-rsh and the server of a node: frames of a letter, a length and so many
// bytes, both ways. Throws unavailable when the connection breaks and invalid_argument when the
// other side does not speak this.
//
// Blocking; owned by one thread.
#pragma once

#include <optional>
#include <string>

namespace gruca::agent {

enum class FrameKind : char {
    challenge = 'C',  // Server: a number, used once.
    request = 'R',    // Client: 64 digits of a signature over challenge and command, the command.
    output = 'o',     // Server: of the command's stdout,
    error = 'e',      //         its stderr,
    exit_code = 'x',  //         and the end, in decimal digits.
    refusal = 'E',    // Server: why not.
};

struct Frame {
    FrameKind kind;
    std::string bytes;
};

void send_frame(int socket, const Frame& frame);
// Nothing when the other side has closed between two frames.
std::optional<Frame> read_frame(int socket);

std::string sign_command(const std::string& secret, const std::string& challenge,
                         const std::string& command);
bool is_same(const std::string& one, const std::string& other);  // In constant time.

}  // namespace gruca::agent
