// net/http_client.h
//
// Sends one HTTP request and waits for the whole answer. Connections are kept and reused. Any
// status is an answer; only the absence of one is a failure: unavailable (cannot reach host:port,
// or cut off before the answer) or deadline_exceeded.
//
// Thread-safe: concurrent calls use a connection each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http.h"

namespace gruca::net {

struct HttpClientOptions {
    std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
    std::chrono::milliseconds total_timeout = std::chrono::seconds(60);
    std::size_t body_bytes_max = 64u << 20;
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

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gruca::net
