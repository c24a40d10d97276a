#include "net/http_server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"
#include "base/queue.h"
#include "net/http_head.h"
#include "net/http_session.h"
#include "net/listener.h"
#include "net/stream_pool.h"

namespace gruca::net {
namespace {
namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kDrainPatience = std::chrono::seconds(2);  // For last answers, when stopping.

}  // namespace

void HttpReply::send(HttpResponse response) const {
    sink_->send(std::move(response));
}

class HttpServer::Impl final : public SessionHost {
  public:
    Impl(const HttpServerOptions& options, HttpHandler handler);
    ~Impl() override { stop(); }

    std::uint16_t port() const { return port_; }
    void listen(const std::string& address);
    void stop();

    const HttpServerOptions& options() const override { return options_; }
    void opened(Session& session) override { sessions_.insert(&session); }
    void closed(Session& session) override;
    bool reserve_body(const Session& session, std::size_t bytes) override;
    void release_body(std::size_t bytes) override { bodies_bytes_ -= bytes; }
    std::uint64_t next_turn() override { return ++turns_; }
    void dispatch(HttpRequest request, HttpReply reply) override;
    bool has_room_for_stream() const override { return streams_.has_room(); }
    void start_stream(StreamRequest request) override;

  private:
    struct Waiting {
        HttpRequest request;
        HttpReply reply;
    };

    std::unique_ptr<Listener> make_listener(const std::string& address);
    void accepted(asio::ip::tcp::socket socket);
    template <class MayGo>
    Session* longest_waiting(MayGo may_go) const;
    void served(SocketStream& stream, SocketStream::End end);
    void take_back(UniqueFd socket, const std::string& received, bool lingers);
    void work();
    void end_sessions();

    const HttpServerOptions options_;
    const HttpHandler handler_;
    Queue<Waiting> waiting_;
    const std::shared_ptr<Loop> loop_ = std::make_shared<Loop>();
    asio::steady_timer drain_{loop_->context};  // From here to streaming_: I/O thread only.
    std::list<std::unique_ptr<Listener>> listeners_;
    std::set<Session*> sessions_;
    std::size_t streaming_ = 0;  // Connections that are away.
    std::uint64_t turns_ = 0;
    std::size_t bodies_bytes_ = 0;  // Reserved.
    std::uint16_t port_ = 0;
    std::atomic<bool> stopping_ = false;
    std::mutex listen_mutex_;
    std::set<std::string> addresses_;  // Guarded by listen_mutex_.
    std::mutex stop_mutex_;
    bool stopped_ = false;  // Guarded by stop_mutex_.
    StreamPool streams_;
    std::vector<std::jthread> workers_;
    std::jthread io_thread_;
};

HttpServer::Impl::Impl(const HttpServerOptions& options, HttpHandler handler)
    : options_(options),
      handler_(std::move(handler)),
      waiting_(options.connections_max),
      port_(options.port),
      streams_(options.streams,
               [this](SocketStream& stream, SocketStream::End end) { served(stream, end); }) {
    listeners_.push_back(make_listener(options_.address));
    addresses_.insert(options_.address);
    port_ = listeners_.front()->port();
    listeners_.front()->start();
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options_.threads); ++i) {
        workers_.emplace_back([this] { work(); });
    }
    io_thread_ = std::jthread([this] { loop_->context.run(); });
}

std::unique_ptr<Listener> HttpServer::Impl::make_listener(const std::string& address) {
    return std::make_unique<Listener>(
        loop_->context, address, port_,
        [this](asio::ip::tcp::socket socket) { accepted(std::move(socket)); });
}

void HttpServer::Impl::listen(const std::string& address) {
    const std::lock_guard lock(listen_mutex_);
    if (addresses_.contains(address)) return;
    loop_->post([this, listener = make_listener(address)]() mutable {
        if (stopping_) return;
        listeners_.push_back(std::move(listener));
        listeners_.back()->start();
    });
    addresses_.insert(address);
}

void HttpServer::Impl::accepted(asio::ip::tcp::socket socket) {
    const auto is_full = [&] { return sessions_.size() + streaming_ >= options_.connections_max; };
    if (is_full()) {
        if (Session* const longest = longest_waiting([](const Session&) { return true; })) {
            longest->close();
        }
    }
    if (is_full()) return;  // The socket closes here.
    std::make_shared<Session>(std::move(socket), *this, loop_)->start();
}

// Who opens connections and says nothing, or not all, must not keep others out.
template <class MayGo>
Session* HttpServer::Impl::longest_waiting(MayGo may_go) const {
    Session* longest = nullptr;
    for (Session* session : sessions_) {
        if (session->waits_since() == 0 || !may_go(*session)) continue;
        if (!longest || session->waits_since() < longest->waits_since()) longest = session;
    }
    return longest;
}

bool HttpServer::Impl::reserve_body(const Session& session, std::size_t bytes) {
    while (bodies_bytes_ + bytes > options_.bodies_bytes_max) {
        Session* const longest =
            longest_waiting([](const Session& other) { return other.has_reserved(); });
        if (!longest || longest == &session) return false;
        longest->close();
    }
    bodies_bytes_ += bytes;
    return true;
}

void HttpServer::Impl::start_stream(StreamRequest request) {
    if (streams_.start(std::move(request))) ++streaming_;
}

// On a thread of the pool.
void HttpServer::Impl::served(SocketStream& stream, SocketStream::End end) {
    UniqueFd socket = stream.take_socket();
    if (end == SocketStream::End::broken) socket.reset();
    loop_->post([this, socket = std::move(socket), received = stream.take_received(),
                 lingers = end == SocketStream::End::lingers]() mutable {
        --streaming_;
        if (socket.is_open() && !stopping_) take_back(std::move(socket), received, lingers);
    });
}

void HttpServer::Impl::take_back(UniqueFd socket, const std::string& received, bool lingers) {
    asio::ip::tcp::socket taken(loop_->context);
    error_code failed;
    taken.assign(asio::ip::tcp::v4(), socket.get(), failed);  // v6 as well: only the number counts.
    if (failed) return;
    socket.release();
    const auto session = std::make_shared<Session>(std::move(taken), *this, loop_);
    lingers ? session->linger() : session->resume(received);
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
    for (const auto& listener : listeners_) listener->stop();
    // Telling a session may take it out of the set.
    for (Session* session : std::vector<Session*>(sessions_.begin(), sessions_.end())) {
        session->shut_down();
    }
    if (sessions_.empty()) return;
    drain_.expires_after(kDrainPatience);
    drain_.async_wait([this](error_code cancelled) {
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
    streams_.stop();
    io_thread_.join();
    loop_->close();
}

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
    return impl_->port();
}

void HttpServer::listen(const std::string& address) {
    impl_->listen(address);
}

void HttpServer::stop() {
    impl_->stop();
}

}  // namespace gruca::net
