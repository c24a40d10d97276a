// net/socket_stream.h
//
// HttpStream over a socket that has left the server's loop: the handler's thread waits in poll,
// reads into the handler's own memory and writes from it. Between the socket and the handler
// nothing is kept but what came together with the head.
//
// Owned by the handler's thread; cut() may come from any other while the object lives.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "net/chunked.h"
#include "net/http_stream.h"

namespace gruca::net {

// A client that moves less than `bytes` in `time` of our waiting is taken for gone.
struct Patience {
    Duration time;
    std::uint64_t bytes;
};

// A request whose head has been read, and the connection it came by.
struct StreamRequest {
    UniqueFd socket;
    HttpRequest head;
    std::string received = {};                     // What came after the head.
    std::optional<std::uint64_t> body_bytes = {};  // Nothing: in chunks.
    bool expects_continue = false;
    bool keeps_alive = true;
    bool knows_chunks = true;  // HTTP/1.1.
};

class SocketStream final : public HttpStream {
  public:
    SocketStream(StreamRequest request, Patience patience);

    const HttpRequest& head() const override { return head_; }
    std::optional<std::uint64_t> body_bytes() const override { return body_bytes_; }
    std::size_t read(std::span<std::byte> into) override;
    void send(HttpResponse response) override;
    void refuse(HttpResponse response) override;
    void begin(HttpResponse head, std::optional<std::uint64_t> bytes) override;
    void write(std::span<const std::byte> bytes) override;
    void write_file(int fd, std::uint64_t offset, std::uint64_t bytes) override;
    bool has_begun() const override { return begun_; }

    void cut();  // The socket is shut; whoever waits on it fails.

    // After the handler: completes the answer and what must be read of the body.
    enum class End {
        kept,     // The next request may be read.
        lingers,  // The answer says that this is the end; what still comes must be dropped first.
        broken,   // To be closed at once.
    };
    End finish(bool handler_failed);

    // After finish. The connection, and what came of the next request.
    UniqueFd take_socket() { return std::move(socket_); }
    std::string take_received() { return received_.substr(received_at_); }

  private:
    // A piece of memory to be sent. More of one is put into one call.
    using Pieces = std::array<iovec, 4>;

    void say_continue();
    std::size_t read_plain(std::span<std::byte> into);
    std::size_t read_chunked(std::span<std::byte> into);
    std::size_t receive(std::span<std::byte> into);
    void drain();
    bool rest_has_come();
    bool counts(std::uint64_t bytes);
    void send_pieces(Pieces pieces, bool more_follows);
    void send_text(std::string_view text, bool more_follows);
    void send_range(int fd, std::uint64_t offset, std::uint64_t bytes);
    void drop_unsent();
    void wait(short events);
    void moved(std::uint64_t bytes);
    [[noreturn]] void fail_cut_off();

    const Patience patience_;
    const SystemClock clock_;
    UniqueFd socket_;
    const HttpRequest head_;
    std::string received_;
    std::size_t received_at_ = 0;
    const std::optional<std::uint64_t> body_bytes_;
    std::uint64_t body_left_ = 0;  // Of a body with a length.
    bool body_ended_ = false;
    ChunkedReader chunks_;
    bool owes_continue_;
    bool keeps_alive_;
    const bool knows_chunks_;

    bool begun_ = false;
    std::string unsent_;  // The answer's head, until something goes with it.
    std::optional<std::uint64_t> answer_left_ = 0;  // Nothing: of unknown length.
    bool answer_in_chunks_ = false;
    bool drops_answer_ = false;  // HEAD, 204, 304.
    bool closes_ = false;
    bool broken_ = false;
    bool waits_ = true;  // For the client.

    Duration patience_left_;
    std::uint64_t moved_ = 0;  // Since patience was renewed.
    std::atomic<bool> is_cut_ = false;
};

}  // namespace gruca::net
