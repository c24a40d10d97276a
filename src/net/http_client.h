// net/http_client.h
//
// Sends one HTTP request and waits for the whole answer. Connections are kept and reused. Any
// status is an answer; only the absence of one is a failure: unavailable (cannot reach host:port,
// or cut off before the answer) or deadline_exceeded.
//
// Thread-safe: concurrent calls use a connection each.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/http.h"

namespace gruca::net {

struct HttpClientOptions {
    std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
    std::chrono::milliseconds total_timeout = std::chrono::seconds(60);
    std::size_t body_bytes_max = 64u << 20;
};

// A call whose body, or answer, is too long for memory. Both functions run on the calling thread;
// what they throw ends the call and comes out of it.
struct HttpTransfer {
    // The request's body, in place of request.body: exactly `upload_bytes`. Writes some bytes and
    // returns how many, at least one.
    std::uint64_t upload_bytes = 0;
    std::function<std::size_t(std::span<std::byte> into)> upload = {};
    // The body of a 2xx answer, in pieces. Other answers have theirs in HttpResponse::body.
    std::function<void(std::span<const std::byte> bytes)> download = {};
    std::function<bool()> cancelled = {};  // As in send().
};

class HttpClient {
  public:
    explicit HttpClient(HttpClientOptions options = {});
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    // `origin` is "http://host:port". `timeout` replaces total_timeout for this call.
    // `cancelled`, polled at least every 200 ms, ends the call with ErrorCode::cancelled.
    HttpResponse send(const std::string& origin, const HttpRequest& request,
                      std::optional<std::chrono::milliseconds> timeout = {},
                      const std::function<bool()>& cancelled = {});

    // Has no limit on the whole time; a server that moves less than 1 KiB/s for 30 s has the call
    // end with deadline_exceeded. A body cut off before its Content-Length is unavailable, and what
    // came of it has been given to `download`.
    HttpResponse transfer(const std::string& origin, const HttpRequest& request,
                          const HttpTransfer& transfer);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gruca::net
