#include "net/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/text.h"

namespace gruca::net {
namespace {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // When descriptors run out.
constexpr auto kDrainPatience = std::chrono::seconds(2);       // For last answers, when stopping.
constexpr auto kLingerPatience = std::chrono::seconds(2);
constexpr std::size_t kLingerBytesMax = 64u << 20;
constexpr int kBacklog = 1024;

HttpResponse plain_response(int status, std::string_view text) {
    return {.status = status,
            .headers = {{"Content-Type", "text/plain"}},
            .body = std::string(text) + "\n"};
}

// What is wrong with a head that the parser let pass, or nothing. Two readers of one connection
// that disagree about where a request ends let one request hide in another, so everything that
// says it twice, or in a way not read here, is refused.
std::optional<std::string> fault_of_head(const http::request_header<>& head) {
    const std::size_t encodings = head.count(http::field::transfer_encoding);
    const std::size_t lengths = head.count(http::field::content_length);
    const std::size_t hosts = head.count(http::field::host);
    if (head.version() != 10 && head.version() != 11) return "HTTP version must be 1.0 or 1.1";
    if (encodings > 0 && lengths > 0) return "both Content-Length and Transfer-Encoding";
    const std::string_view length = head[http::field::content_length];
    if (lengths > 1 || length.find_first_not_of("0123456789") != std::string_view::npos) {
        return "Content-Length must be one number";
    }
    if (encodings > 0) {
        const std::string_view encoding = head[http::field::transfer_encoding];
        const bool is_chunked = encodings == 1 && to_lower(encoding) == "chunked";
        if (!is_chunked || head.version() == 10) return "Transfer-Encoding must be chunked";
    }
    if (hosts > 1 || (hosts == 0 && head.version() == 11)) return "there must be one Host";
    if (!std::string_view(head.target()).starts_with('/')) return "target must begin with '/'";
    return std::nullopt;
}

// A line break in a header's value would let whoever chose the value write headers of their own.
bool is_safe(const Headers& headers) {
    for (const auto& [name, value] : headers.fields()) {
        if (name.empty() || name.find_first_of("\r\n: ") != std::string::npos) return false;
        if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) return false;
    }
    return true;
}

bool may_have_body(int status) {
    return status >= 200 && status != 204 && status != 304;
}

// The work of the one I/O thread. Sessions share it, because a reply may be kept longer than the
// server lives; what is posted after close() is dropped.
class Loop {
  public:
    template <class Work>
    void post(Work&& work) {
        const std::lock_guard lock(mutex_);
        if (open_) asio::post(context, std::forward<Work>(work));
    }

    // After the I/O thread has ended.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            open_ = false;
        }
        context.restart();
        context.poll();  // What was posted too late finds its session closed.
    }

    asio::io_context context{1};

  private:
    std::mutex mutex_;
    bool open_ = true;  // Guarded by mutex_.
};

class Session;

// What a session needs of its server. Called on the I/O thread.
class SessionHost {
  public:
    virtual ~SessionHost() = default;
    virtual const HttpServerOptions& options() const = 0;
    virtual void opened(Session& session) = 0;
    virtual void closed(Session& session) = 0;
    virtual void dispatch(HttpRequest request, HttpReply reply) = 0;
};

// One connection. Reads a request, waits for its reply, writes it, and only then reads the next, so
// pipelined requests are answered in order. Lives on the I/O thread, but for post_reply.
class Session final : public std::enable_shared_from_this<Session> {
  public:
    Session(asio::ip::tcp::socket socket, SessionHost& host, std::shared_ptr<Loop> loop)
        : loop_(std::move(loop)), host_(host), stream_(std::move(socket)) {}

    void start();
    void shut_down();  // The server is stopping: 503 to who waits, the end for who is idle.
    void close();
    void post_reply(HttpResponse response);  // From any thread.

  private:
    enum class State { reading, waiting, writing, lingering, closed };

    void read_head();
    void after_head(std::size_t bytes);
    void read_body();
    void after_body();
    void failed_to_read(beast::error_code error);
    void refuse(int status, std::string_view text);
    void write(HttpResponse response);
    void after_write();
    void linger();

    // A completion handler that keeps the session alive and does nothing once it is closed.
    template <class Next>
    auto then(Next next) {
        return [self = shared_from_this(), next](beast::error_code error, std::size_t bytes) {
            if (self->state_ != State::closed) next(*self, error, bytes);
        };
    }

    const std::shared_ptr<Loop> loop_;  // First, so that it outlives the stream.
    SessionHost& host_;                 // Not touched once closed.
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    std::optional<http::request_parser<http::string_body>> parser_;
    HttpRequest request_;
    bool wants_head_only_ = false;
    http::response<http::string_body> response_;
    std::optional<http::response_serializer<http::string_body>> serializer_;
    std::array<char, 4096> discarded_;
    std::size_t discarded_bytes_ = 0;
    State state_ = State::reading;
    bool closes_after_write_ = false;
    bool lingers_after_write_ = false;
};

class SessionSink final : public HttpReply::Sink {
  public:
    explicit SessionSink(std::shared_ptr<Session> session) : session_(std::move(session)) {}
    SessionSink(const SessionSink&) = delete;
    SessionSink& operator=(const SessionSink&) = delete;
    ~SessionSink() override { answer(plain_response(500, "the request was not answered")); }

    void send(HttpResponse response) override { answer(std::move(response)); }

  private:
    void answer(HttpResponse response) {
        if (!sent_.exchange(true)) session_->post_reply(std::move(response));
    }

    const std::shared_ptr<Session> session_;
    std::atomic<bool> sent_ = false;
};

void Session::start() {
    beast::error_code ignored;
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    host_.opened(*this);
    read_head();
}

void Session::read_head() {
    state_ = State::reading;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(host_.options().head_bytes_max));
    parser_->body_limit(host_.options().body_bytes_max);
    stream_.expires_after(host_.options().read_timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            then([](Session& self, beast::error_code error, std::size_t bytes) {
                                error ? self.failed_to_read(error) : self.after_head(bytes);
                            }));
}

void Session::after_head(std::size_t bytes) {
    const auto& head = parser_->get();
    // The parser's own limit is for heads that do not end, and lets others pass by a little.
    if (bytes > host_.options().head_bytes_max)
        return refuse(431, "the request's head is too long");
    if (const auto fault = fault_of_head(head)) return refuse(400, *fault);
    // Copied now, because trailers of a chunked body would be added to the parser's fields.
    request_ = {.method = std::string(head.method_string()), .target = std::string(head.target())};
    for (const auto& field : head) {
        request_.headers.add(std::string(field.name_string()), std::string(field.value()));
    }
    wants_head_only_ = request_.method == "HEAD";
    closes_after_write_ = !head.keep_alive();
    const bool asks_first = to_lower(head[http::field::expect]) == "100-continue";
    if (!asks_first || head.version() == 10 || parser_->is_done()) return read_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      then([](Session& self, beast::error_code error, std::size_t) {
                          error ? self.close() : self.read_body();
                      }));
}

void Session::read_body() {
    stream_.expires_after(host_.options().read_timeout);
    http::async_read(stream_, buffer_, *parser_,
                     then([](Session& self, beast::error_code error, std::size_t) {
                         error ? self.failed_to_read(error) : self.after_body();
                     }));
}

void Session::after_body() {
    request_.body = std::move(parser_->get().body());
    parser_.reset();
    state_ = State::waiting;
    stream_.expires_never();
    host_.dispatch(std::move(request_),
                   HttpReply(std::make_shared<SessionSink>(shared_from_this())));
}

void Session::failed_to_read(beast::error_code error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
        return refuse(431, "the request's head is too long");
    }
    if (error == http::error::body_limit) return refuse(413, "the request's body is too long");
    const bool malformed = error.category() == make_error_code(http::error::bad_method).category();
    const bool cut_off =
        error == http::error::end_of_stream || error == http::error::partial_message;
    if (!malformed || cut_off) return close();
    refuse(400, "malformed request: " + error.message());
}

// The rest of what the client sends is not read as a request any more.
void Session::refuse(int status, std::string_view text) {
    closes_after_write_ = true;
    lingers_after_write_ = true;
    wants_head_only_ = false;
    write(plain_response(status, text));
}

void Session::post_reply(HttpResponse response) {
    loop_->post([self = shared_from_this(), response = std::move(response)]() mutable {
        if (self->state_ == State::waiting) self->write(std::move(response));
    });
}

void Session::write(HttpResponse response) {
    state_ = State::writing;
    if (!is_safe(response.headers)) {
        log_error("a response header has an illegal character; the client was told 500");
        response = plain_response(500, "internal error");
    }
    response_ = {};
    response_.result(static_cast<unsigned>(response.status));
    response_.version(11);
    for (const auto& [name, value] : response.headers.fields()) response_.insert(name, value);
    response_.erase(http::field::transfer_encoding);
    response_.erase(http::field::content_length);
    if (may_have_body(response.status)) {
        response_.content_length(response.body.size());
        response_.body() = std::move(response.body);
    }
    response_.keep_alive(!closes_after_write_);
    stream_.expires_after(host_.options().read_timeout);
    serializer_.emplace(response_);
    auto written = then([](Session& self, beast::error_code error, std::size_t) {
        error ? self.close() : self.after_write();
    });
    if (wants_head_only_) return http::async_write_header(stream_, *serializer_, written);
    http::async_write(stream_, *serializer_, written);
}

void Session::after_write() {
    if (!closes_after_write_) return read_head();
    if (!lingers_after_write_) return close();
    beast::error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    state_ = State::lingering;
    stream_.expires_after(kLingerPatience);
    linger();
}

// Closing with unread bytes resets the connection, and the client might lose the answer that says
// why. So what it still sends is read and dropped for a while.
void Session::linger() {
    stream_.async_read_some(
        asio::buffer(discarded_), then([](Session& self, beast::error_code error, std::size_t n) {
            self.discarded_bytes_ += n;
            error || self.discarded_bytes_ > kLingerBytesMax ? self.close() : self.linger();
        }));
}

void Session::shut_down() {
    closes_after_write_ = true;
    if (state_ == State::waiting) return write(plain_response(503, "the server is stopping"));
    if (state_ != State::writing) close();
}

void Session::close() {
    if (state_ == State::closed) return;
    state_ = State::closed;
    beast::error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    stream_.close();
    host_.closed(*this);
}

}  // namespace

void HttpReply::send(HttpResponse response) const {
    sink_->send(std::move(response));
}

class HttpServer::Impl final : public SessionHost {
  public:
    Impl(const HttpServerOptions& options, HttpHandler handler);
    ~Impl() override { stop(); }

    std::uint16_t port() const { return port_; }
    void stop();

    const HttpServerOptions& options() const override { return options_; }
    void opened(Session& session) override { sessions_.insert(&session); }
    void closed(Session& session) override;
    void dispatch(HttpRequest request, HttpReply reply) override;

  private:
    struct Waiting {
        HttpRequest request;
        HttpReply reply;
    };

    void listen();
    void accept_next();
    void accept_later(beast::error_code error);
    void work();
    void end_sessions();

    const HttpServerOptions options_;
    const HttpHandler handler_;
    Queue<Waiting> waiting_;
    const std::shared_ptr<Loop> loop_ = std::make_shared<Loop>();
    asio::ip::tcp::acceptor acceptor_{loop_->context};  // From here to sessions_: I/O thread only.
    asio::steady_timer accept_pause_{loop_->context};
    asio::steady_timer drain_{loop_->context};
    bool accept_failed_ = false;
    std::set<Session*> sessions_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stopping_ = false;
    std::mutex stop_mutex_;
    bool stopped_ = false;  // Guarded by stop_mutex_.
    std::vector<std::jthread> workers_;
    std::jthread io_thread_;
};

HttpServer::Impl::Impl(const HttpServerOptions& options, HttpHandler handler)
    : options_(options), handler_(std::move(handler)), waiting_(options.connections_max) {
    listen();
    accept_next();
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options_.threads); ++i) {
        workers_.emplace_back([this] { work(); });
    }
    io_thread_ = std::jthread([this] { loop_->context.run(); });
}

void HttpServer::Impl::listen() {
    const std::string where = options_.address + ":" + std::to_string(options_.port);
    beast::error_code error;
    const auto address = asio::ip::make_address(options_.address, error);
    if (error) throw Error(ErrorCode::unavailable, "cannot listen, not an IP address: " + where);
    const asio::ip::tcp::endpoint endpoint(address, options_.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (error) {
        throw Error(ErrorCode::unavailable, "cannot listen on " + where + ": " + error.message());
    }
    port_ = acceptor_.local_endpoint().port();
}

void HttpServer::Impl::accept_next() {
    acceptor_.async_accept([this](beast::error_code error, asio::ip::tcp::socket socket) {
        if (stopping_ || error == asio::error::operation_aborted) return;
        if (error) return accept_later(error);
        accept_failed_ = false;
        if (sessions_.size() < options_.connections_max) {
            std::make_shared<Session>(std::move(socket), *this, loop_)->start();
        }  // Otherwise the socket closes here.
        accept_next();
    });
}

// Most likely no descriptor is left. The next try waits until some may have been freed.
void HttpServer::Impl::accept_later(beast::error_code error) {
    if (!accept_failed_) log_warning("cannot accept connections: {}", error.message());
    accept_failed_ = true;
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait([this](beast::error_code cancelled) {
        if (!cancelled && !stopping_) accept_next();
    });
}

void HttpServer::Impl::closed(Session& session) {
    sessions_.erase(&session);
    if (stopping_ && sessions_.empty()) drain_.cancel();
}

void HttpServer::Impl::dispatch(HttpRequest request, HttpReply reply) {
    const HttpReply refused = reply;
    if (!waiting_.try_push({.request = std::move(request), .reply = std::move(reply)})) {
        refused.send(plain_response(503, "the server is busy or stopping; try again"));
    }
}

void HttpServer::Impl::work() {
    while (auto next = waiting_.pop()) {
        const HttpReply reply = next->reply;
        if (stopping_) {
            reply.send(plain_response(503, "the server is stopping"));
            continue;
        }
        const auto error =
            run_guarded([&] { handler_(std::move(next->request), std::move(next->reply)); });
        if (!error) continue;
        log_error("request handler failed: {}", error->what());
        reply.send(plain_response(500, "internal error"));
    }
}

void HttpServer::Impl::end_sessions() {
    beast::error_code ignored;
    acceptor_.close(ignored);
    accept_pause_.cancel();
    // Telling a session may take it out of the set.
    for (Session* session : std::vector<Session*>(sessions_.begin(), sessions_.end())) {
        session->shut_down();
    }
    if (sessions_.empty()) return;
    drain_.expires_after(kDrainPatience);
    drain_.async_wait([this](beast::error_code cancelled) {
        if (cancelled) return;
        for (Session* session : std::vector<Session*>(sessions_.begin(), sessions_.end())) {
            session->close();
        }
    });
}

void HttpServer::Impl::stop() {
    const std::lock_guard lock(stop_mutex_);
    if (std::exchange(stopped_, true)) return;
    stopping_ = true;
    asio::post(loop_->context, [this] { end_sessions(); });
    waiting_.close();
    workers_.clear();  // Joins them: every handler has returned.
    io_thread_.join();
    loop_->close();
}

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
    return impl_->port();
}

void HttpServer::stop() {
    impl_->stop();
}

}  // namespace gruca::net
