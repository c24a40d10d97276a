// net/http_server.h
//
// An HTTP/1.1 server with keep-alive. Sockets are driven by one thread; each complete request is
// given to the handler on a fixed pool. The handler gets a reply object that it may keep and answer
// later from any thread, which is how long polls wait without holding a thread.
//
// Refused before the handler sees them: heads over head_bytes_max (431), bodies over
// body_bytes_max (413), malformed or smuggled heads (400: both Content-Length and
// Transfer-Encoding, two different lengths), connections over connections_max (closed).
// "Expect: 100-continue" is honoured. A handler that throws, or a reply dropped unanswered, gives
// 500.
//
// Thread-safe. stop() (also called by the destructor) stops accepting, answers 503 to what is still
// waiting for a reply, and returns when every handler has returned.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http.h"

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

struct HttpServerOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  // 0: any free port.
    std::size_t threads = 4;
    std::size_t head_bytes_max = 64u << 10;
    std::size_t body_bytes_max = 16u << 20;
    std::size_t connections_max = 12000;
    std::chrono::milliseconds read_timeout = std::chrono::seconds(60);  // Idle, or a slow request.
};

class HttpServer {
  public:
    // Listens when this returns. Throws unavailable, naming address and port, when it cannot.
    HttpServer(const HttpServerOptions& options, HttpHandler handler);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    std::uint16_t port() const;
    void stop();

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gruca::net
