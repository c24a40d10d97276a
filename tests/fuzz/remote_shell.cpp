// The frames between nodes of a job. What is read is sent again as the same bytes; nothing longer
// than a command and its signature is taken, and a signature is of one challenge and command.

#include <sys/socket.h>

#include "agent/remote_shell.h"
#include "agent/remote_shell_wire.h"
#include "base/file.h"
#include "fuzz/target.h"

namespace agent = gruca::agent;

namespace {

struct Pair {
    Pair() {
        int ends[2];
        CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
        near.reset(ends[0]);
        far.reset(ends[1]);
    }
    gruca::UniqueFd near, far;
};

void check_frames(const std::string& bytes) {
    Pair in, out;
    CHECK(
        ::send(in.near.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
        "a socket holds less than an input");
    in.near.reset();
    std::string again;
    const bool whole = gruca::fuzz::takes([&] {
        while (const auto frame = agent::read_frame(in.far.get())) {
            CHECK(frame->bytes.size() <= agent::kCommandBytesMax + 64, "{}", frame->bytes.size());
            agent::send_frame(out.near.get(), *frame);
            std::string sent(frame->bytes.size() + 5, '\0');
            CHECK(::recv(out.far.get(), sent.data(), sent.size(), MSG_WAITALL) ==
                      static_cast<ssize_t>(sent.size()),
                  "a frame of another length");
            again += sent;
        }
    });
    CHECK(whole ? again == bytes : bytes.starts_with(again), "frames read in two ways");
}

void check_signature(const std::string& bytes) {
    const std::string challenge = bytes.substr(0, bytes.size() / 2);
    const std::string command = bytes.substr(challenge.size());
    const std::string signature = agent::sign_command("secret", challenge, command);
    CHECK(agent::is_same(signature, agent::sign_command("secret", challenge, command)), "changes");
    CHECK(!agent::is_same(signature, agent::sign_command("other", challenge, command)), "secret");
    // The same bytes, divided elsewhere.
    if (command.empty()) return;
    CHECK(!agent::is_same(signature, agent::sign_command("secret", challenge + command.front(),
                                                         command.substr(1))),
          "one signature of two commands");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes = gruca::fuzz::text_of(data, size);
    if (bytes.size() > 64 << 10) return 0;
    check_frames(bytes);
    check_signature(bytes);
    return 0;
}
