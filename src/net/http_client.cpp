#include "net/http_client.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "net/call_wait.h"
#include "net/client_connection.h"
#include "net/http_answer.h"
#include "net/url.h"

namespace gruca::net {
namespace {

constexpr std::size_t kIdleMax = 64;
constexpr StallLimit kStall{.time = std::chrono::seconds(30), .bytes = 30u << 10};
constexpr int kTries = 2;  // A kept connection may be closed at the moment it is used.

bool is_success(const HttpResponse& head) {
    return head.status >= 200 && head.status < 300;
}

void require_safe(const HttpRequest& request) {
    const auto has_break = [](const std::string& text) {
        return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
    };
    bool safe = !has_break(request.target) && !has_break(request.method) &&
                request.target.starts_with('/') && request.target.find(' ') == std::string::npos;
    for (const auto& [name, value] : request.headers.fields()) {
        safe = safe && !has_break(name) && !has_break(value);
    }
    if (!safe) {
        throw Error(ErrorCode::invalid_argument,
                    "a request's target or header has an illegal character: " + request.target);
    }
}

// The bytes that the request's head promises, when it is to promise any.
std::optional<std::uint64_t> length_of(const HttpRequest& request, const HttpTransfer* transfer) {
    if (transfer != nullptr && transfer->upload) return transfer->upload_bytes;
    const bool may_be_empty =
        request.method != "POST" && request.method != "PUT" && request.method != "PATCH";
    if (request.body.empty() && may_be_empty) return std::nullopt;
    return request.body.size();
}

std::string head_of(const HttpRequest& request, const std::string& server,
                    std::optional<std::uint64_t> length) {
    std::string head = request.method + " " + request.target + " HTTP/1.1\r\n";
    if (!request.headers.find("Host")) head += "Host: " + server + "\r\n";
    for (const auto& [name, value] : request.headers.fields()) {
        head.append(name).append(": ").append(value).append("\r\n");
    }
    if (length && !request.headers.find("Content-Length")) {
        head += "Content-Length: " + std::to_string(*length) + "\r\n";
    }
    return head + "\r\n";
}

}  // namespace

class HttpClient::Impl {
  public:
    explicit Impl(HttpClientOptions options) : options_(options) {}

    struct Call {
        const std::string& origin;
        const HttpRequest& request;
        std::optional<std::chrono::milliseconds> timeout;
        const std::function<bool()>& cancelled;
        const HttpTransfer* transfer = nullptr;
    };

    HttpResponse run(const Call& call) {
        const Origin origin = parse_origin(call.origin);
        require_safe(call.request);
        const std::string server = origin.host + ":" + std::to_string(origin.port);
        CallWait wait(call.timeout, call.transfer != nullptr ? std::optional(kStall) : std::nullopt,
                      call.cancelled);
        try {
            return exchange(call, origin, server, wait);
        } catch (Error& error) {
            error.add_context("calling " + server);
            throw;
        }
    }

    const HttpClientOptions& options() const { return options_; }

  private:
    using Connection = std::unique_ptr<ClientConnection>;
    struct Idle {
        std::string server;
        Connection connection;
    };

    HttpResponse exchange(const Call& call, const Origin& origin, const std::string& server,
                          CallWait& wait) {
        const std::string head =
            head_of(call.request, server, length_of(call.request, call.transfer));
        std::string body;
        for (int attempt = 1;; ++attempt) {
            HttpAnswer answer(call.request.method,
                              [&](const HttpResponse& started, std::span<const std::byte> bytes) {
                                  receive(call, started, bytes, body);
                              });
            Connection connection = take_idle(server);
            const bool was_kept = connection != nullptr;
            if (!was_kept) {
                connection =
                    std::make_unique<ClientConnection>(origin, options_.connect_timeout, wait);
            }
            const auto end = connection->exchange(
                {.head = head, .request = call.request, .transfer = call.transfer}, answer, wait);
            if (end == ClientConnection::End::too_late) {
                throw Error(ErrorCode::deadline_exceeded, "no whole answer in time");
            }
            if (end == ClientConnection::End::cut_off) {
                if (was_kept && attempt < kTries && connection->uploaded() == 0) continue;
                throw Error(ErrorCode::unavailable, "cut off before the answer");
            }
            if (connection->may_be_kept(answer)) give_back(server, std::move(connection));
            answer.response().body = std::move(body);
            return std::move(answer.response());
        }
    }

    void receive(const Call& call, const HttpResponse& started, std::span<const std::byte> bytes,
                 std::string& body) const {
        if (call.transfer != nullptr && call.transfer->download && is_success(started)) {
            return call.transfer->download(bytes);
        }
        if (body.size() + bytes.size() > options_.body_bytes_max) {
            throw Error(ErrorCode::resource_exhausted,
                        "the answer is longer than " + human_bytes(options_.body_bytes_max));
        }
        body.append(text_of(bytes));
    }

    // Nothing when there is none to that server that can be used.
    Connection take_idle(const std::string& server) {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = idle_.size(); i-- > 0;) {
            if (idle_[i].server != server) continue;
            Connection found = std::move(idle_[i].connection);
            idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
            if (found->is_idle()) return found;
        }
        return nullptr;
    }

    // The one unused for longest gives way.
    void give_back(const std::string& server, Connection connection) {
        const std::lock_guard lock(mutex_);
        if (idle_.size() == kIdleMax) idle_.erase(idle_.begin());
        idle_.push_back({.server = server, .connection = std::move(connection)});
    }

    const HttpClientOptions options_;
    std::mutex mutex_;
    std::vector<Idle> idle_;  // Guarded by mutex_.
};

HttpClient::HttpClient(HttpClientOptions options) : impl_(std::make_unique<Impl>(options)) {}

HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const std::string& origin, const HttpRequest& request,
                              std::optional<std::chrono::milliseconds> timeout,
                              const std::function<bool()>& cancelled) {
    return impl_->run({.origin = origin,
                       .request = request,
                       .timeout = timeout.value_or(impl_->options().total_timeout),
                       .cancelled = cancelled});
}

HttpResponse HttpClient::transfer(const std::string& origin, const HttpRequest& request,
                                  const HttpTransfer& transfer) {
    return impl_->run({.origin = origin,
                       .request = request,
                       .timeout = {},
                       .cancelled = transfer.cancelled,
                       .transfer = &transfer});
}

}  // namespace gruca::net
