// net/http_session.h
//
// One connection of the server, and the loop that all of them live on. A session reads a request,
// waits for its reply, writes it, and only then reads the next, so pipelined requests are answered
// in order. A request for a stream takes the socket away from it: the session ends, and another
// begins when the stream gives the socket back.
//
// Owned by the I/O thread, but for post_reply and Loop::post, which are thread-safe.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_server.h"
#include "net/socket_stream.h"

namespace gruca::net {

// The work of the one I/O thread. Sessions share it, because a reply may be kept longer than the
// server lives; what is posted after close() is dropped.
class Loop {
  public:
    template <class Work>
    void post(Work&& work) {
        const std::lock_guard lock(mutex_);
        if (open_) boost::asio::post(context, std::forward<Work>(work));
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

    boost::asio::io_context context{1};

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
    // For bytes of a session's body. Others that wait for theirs may be closed for it.
    virtual bool reserve_body(const Session& session, std::size_t bytes) = 0;
    virtual void release_body(std::size_t bytes) = 0;
    virtual std::uint64_t next_turn() = 0;  // 1, 2, 3 and so on.
    virtual void dispatch(HttpRequest request, HttpReply reply) = 0;
    virtual bool has_room_for_stream() const = 0;
    virtual void start_stream(StreamRequest request) = 0;
};

class Session final : public std::enable_shared_from_this<Session> {
  public:
    Session(boost::asio::ip::tcp::socket socket, SessionHost& host, std::shared_ptr<Loop> loop);

    void start();
    // Instead of start(), for a connection that was away: `received` came of the next request.
    void resume(std::string_view received);
    void linger();     // Or for one whose last answer has been sent.
    void shut_down();  // The server is stopping: 503 to who waits, the end for who is idle.
    void close();
    void post_reply(HttpResponse response);  // From any thread.

    // When it began to wait for its client (for a request, the rest of one, or that an answer is
    // taken), as a turn of the host; 0 while the request is at work.
    std::uint64_t waits_since() const { return waits_since_; }
    bool has_reserved() const { return reserved_bytes_ > 0; }

  private:
    enum class State { reading, waiting, writing, lingering, closed };
    using Error = boost::beast::error_code;

    void read_head();
    void look_for_head();
    void after_head(std::string_view raw);
    void route(std::size_t head_bytes);
    void hand_over(bool expects_continue);
    bool make_room_in_body();
    void release_body();
    void say_continue();
    void read_body();
    void after_body();
    void failed_to_read(Error error);
    void refuse(HttpResponse response);
    void write(HttpResponse response);
    void after_write();
    void drop_what_comes();

    // A completion handler that keeps the session alive and does nothing once it is closed.
    template <class Next>
    auto then(Next next) {
        return [self = shared_from_this(), next](Error error, std::size_t bytes) {
            if (self->state_ != State::closed) next(*self, error, bytes);
        };
    }

    const std::shared_ptr<Loop> loop_;  // First, so that it outlives the stream.
    SessionHost& host_;                 // Not touched once closed.
    boost::beast::tcp_stream stream_;
    boost::beast::flat_buffer buffer_;
    std::uint64_t waits_since_ = 0;
    std::size_t reserved_bytes_ = 0;  // For the body.
    std::size_t searched_bytes_ = 0;  // Of the buffer, for the end of the head.
    std::optional<boost::beast::http::request_parser<boost::beast::http::buffer_body>> parser_;
    HttpRequest request_;
    bool wants_head_only_ = false;
    std::string answer_head_;
    std::string answer_body_;
    std::unique_ptr<std::array<char, 4096>> dropped_;  // Only who lingers has it.
    std::size_t dropped_bytes_ = 0;
    State state_ = State::reading;
    bool closes_after_write_ = false;
    bool lingers_after_write_ = false;
};

}  // namespace gruca::net
