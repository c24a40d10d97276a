// net/http_server.h
//
// An HTTP/1.1 server with keep-alive. Sockets are driven by one thread; each complete request is
// given to the handler on a fixed pool. The handler gets a reply object that it may keep and answer
// later from any thread, which is how long polls wait without holding a thread.
//
// Requests that HttpServerOptions::streams selects go to a stream handler instead, as soon as their
// head is read and on threads of their own: see net/http_stream.h.
//
// Refused before the handler sees them: heads over head_bytes_max (431), bodies over
// body_bytes_max (413), malformed or smuggled heads (400: both Content-Length and
// Transfer-Encoding, two different lengths). Bodies are whole in memory, so together they have a
// limit as well; those up to 16 KiB are not counted, that calls go on when long bodies fill it.
//
// Who has sent nothing, or not all, has not signed yet, and must not keep out who has. A connection
// over connections_max takes the place of the one that has waited longest for its client; when the
// requests of all are at work, the new one is closed. Bodies count as they come, whatever length
// was announced; over bodies_bytes_max the one that has waited longest for its rest gives way, and
// when all the others are at work, the new one is told 503.
//
// "Expect: 100-continue" is honoured. A handler that throws, or a reply dropped unanswered, gives
// 500.
//
// Every time limit is for the whole of what it limits, not from byte to byte: a head or body that
// comes one byte at a time, and a client that reads as slowly, are cut off.
//
// Thread-safe. stop() (also called by the destructor) stops accepting, answers 503 to what is still
// waiting for a reply, gives streams two seconds before it cuts them, and returns when every
// handler has returned.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http.h"
#include "net/http_stream.h"

namespace gruca::net {

// Where the answer to one request goes. Copyable; the first send counts, later ones are ignored.
// A reply may be kept longer than the server lives; its answer then goes nowhere.
class HttpReply {
  public:
    // Tests of handlers bring a Sink of their own.
    class Sink {
      public:
        virtual ~Sink() = default;
        virtual void send(HttpResponse response) = 0;  // May come again, from any thread.
    };
    explicit HttpReply(std::shared_ptr<Sink> sink) : sink_(std::move(sink)) {}
    void send(HttpResponse response) const;

  private:
    std::shared_ptr<Sink> sink_;
};

using HttpHandler = std::function<void(HttpRequest request, HttpReply reply)>;

// Which requests are streams, and who serves them.
struct HttpStreamOptions {
    // Asked on the I/O thread with the head alone, so it must be quick and must not throw. Without
    // it no request is a stream.
    std::function<bool(const HttpRequest& head)> selects = {};
    HttpStreamHandler handler = {};
    // Transfers at once, and so threads. The next ones are answered with `busy`, for S3 a SlowDown,
    // and their connection is closed.
    std::size_t at_once_max = 128;
    HttpResponse busy = {.status = 503};
    // A client that moves less than stall_bytes while a read or write waits stall_time for it is
    // cut off. Time in which the handler does something else does not count.
    std::chrono::milliseconds stall_time = std::chrono::seconds(30);
    std::uint64_t stall_bytes = 64u << 10;
};

struct HttpServerOptions {
    std::string address = "127.0.0.1";  // More by listen().
    std::uint16_t port = 0;             // 0: any free port.
    std::size_t threads = 4;
    std::size_t head_bytes_max = 64u << 10;
    std::size_t body_bytes_max = 16u << 20;
    std::size_t bodies_bytes_max = 1u << 30;  // Of all requests at once.
    std::size_t connections_max = 12000;
    std::chrono::milliseconds read_timeout = std::chrono::seconds(60);  // Idle, or a slow request.
    HttpStreamOptions streams = {};
};

class HttpServer {
  public:
    // Listens when this returns. Throws unavailable, naming address and port, when it cannot.
    HttpServer(const HttpServerOptions& options, HttpHandler handler);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    std::uint16_t port() const;

    // Accepts on another address as well, with the same port. Listens when this returns; once more
    // for the same address does nothing. An address that the machine has lost and regains is still
    // listened on. Throws as the constructor does.
    void listen(const std::string& address);

    void stop();

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gruca::net
