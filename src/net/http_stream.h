// net/http_stream.h
//
// A request whose body, or answer, is too long for memory. A stream handler is called when the head
// has been read, on a thread of its own that may block; it reads the body in pieces and writes the
// answer in pieces, straight from and to the socket. Nothing is read ahead, so a slow handler slows
// its client and holds no memory.
//
// A handler that wants nothing of the body answers without reading it: a client that sent "Expect:
// 100-continue" is told to go on only by the first read. Reading may go on after begin().
//
// What the client does wrong ends in an exception out of read, write or write_file, which a handler
// may let pass; the connection is then cut, so that the client never takes a part for the whole:
//
//   unavailable        cut off, stalled (see HttpStreamOptions), or the server is stopping
//   invalid_argument   a chunked body that is malformed
//   data_loss          write_file: the file ends before the range does
//
// A handler that returns or throws without an answer gives 500 when that is still possible.
// Connections are kept after whole answers. When a body was left unread that has not come yet, or
// more of it than 64 KiB, the answer says "Connection: close": no thread waits for what nobody
// wants.
//
// Owned by the handler's thread, for the time of the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "net/http.h"

namespace gruca::net {

class HttpStream {
  public:
    virtual ~HttpStream() = default;

    virtual const HttpRequest& head() const = 0;  // Its body is empty.

    // The body's length on the wire; 0 without a body, nothing when it comes in chunks. There is no
    // limit but the handler's: it refuses by this number, or counts what it reads.
    virtual std::optional<std::uint64_t> body_bytes() const = 0;

    // Waits for some bytes, at least one unless `into` is empty; 0 means that the body is over and
    // whole. Pieces of 256 KiB to 1 MiB are fastest. Transfer-Encoding is taken off, trailers are
    // dropped; aws-chunked is not (see sigv4_payload.h).
    virtual std::size_t read(std::span<std::byte> into) = 0;

    // The whole answer. Content-Length is the body's; for HEAD the body is left out.
    virtual void send(HttpResponse response) = 0;
    // As send, for who has not shown to be trusted with a thread: it does not wait for the client,
    // which loses an answer that it leaves no room for, and the connection ends.
    virtual void refuse(HttpResponse response) = 0;

    // Begins an answer (`head.body` is ignored) whose body follows by write and write_file: exactly
    // `bytes` of them, or in chunks of unknown number when that is nothing. HEAD gets
    // Content-Length: `bytes`, and what is written is dropped. An answer that may have no body
    // (204, 304) takes 0. One answer a request: a second send or begin is a bug.
    virtual void begin(HttpResponse head, std::optional<std::uint64_t> bytes) = 0;
    virtual void write(std::span<const std::byte> bytes) = 0;
    // From a file's page cache without a copy of ours. The file's own position is not moved.
    virtual void write_file(int fd, std::uint64_t offset, std::uint64_t bytes) = 0;

    virtual bool has_begun() const = 0;  // send or begin was called.
};

using HttpStreamHandler = std::function<void(HttpStream& stream)>;

// The whole body, for small ones. Throws resource_exhausted when it is longer than `bytes_max`.
std::string read_whole(HttpStream& stream, std::size_t bytes_max);

}  // namespace gruca::net
