#include "net/http_session.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <limits>

#include "base/log.h"
#include "base/text.h"
#include "net/http_head.h"

namespace gruca::net {
namespace {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr auto kLingerPatience = std::chrono::seconds(2);
constexpr std::size_t kLingerBytesMax = 64u << 20;
constexpr std::size_t kFirstReadBytes = 2u << 10;  // What an idle connection holds.
constexpr std::size_t kIdleBufferBytesMax = 4u << 10;
constexpr std::size_t kNextReadBytes = 16u << 10;
constexpr std::size_t kFirstBodyBytes = 4u << 10;
constexpr std::size_t kSmallBodyBytes = 16u << 10;        // Needs no reservation.
constexpr std::size_t kKeptByKernelBytesMax = 64u << 10;  // For a closed connection.
constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string_view text_in(const beast::flat_buffer& buffer) {
    return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

// Whether a close drops what was not read. Who does not read a long answer must not have the kernel
// keep it for him after the time limit, which closes the socket.
void drop_when_closed(asio::ip::tcp::socket& socket, bool drop) {
    beast::error_code ignored;
    socket.set_option(asio::socket_base::linger(drop, 0), ignored);
}

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

}  // namespace

Session::Session(asio::ip::tcp::socket socket, SessionHost& host, std::shared_ptr<Loop> loop)
    : loop_(std::move(loop)), host_(host), stream_(std::move(socket)) {
    // One read of a body may ask for this much besides what has been read.
    buffer_.max_size(host.options().head_bytes_max + (128u << 10));
}

void Session::start() {
    beast::error_code ignored;
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    host_.opened(*this);
    read_head();
}

void Session::resume(std::string_view received) {
    host_.opened(*this);
    if (!received.empty()) {
        asio::buffer_copy(buffer_.prepare(received.size()), asio::buffer(received));
        buffer_.commit(received.size());
    }
    read_head();
}

void Session::read_head() {
    state_ = State::reading;
    searched_bytes_ = 0;
    if (buffer_.size() == 0 && buffer_.capacity() > kIdleBufferBytesMax) buffer_.shrink_to_fit();
    stream_.expires_after(host_.options().read_timeout);
    waits_since_ = host_.next_turn();
    look_for_head();
}

// The head is looked for before the parser sees it, so that what is refused does not depend on what
// the parser would make of it, and an idle connection has no parser.
void Session::look_for_head() {
    const std::string_view seen = text_in(buffer_);
    const std::size_t from =
        searched_bytes_ < kHeadEnd.size() ? 0 : searched_bytes_ - kHeadEnd.size();
    const std::size_t end = seen.find(kHeadEnd, from);
    if (end != std::string_view::npos) return after_head(seen.substr(0, end + kHeadEnd.size()));
    searched_bytes_ = seen.size();
    if (seen.size() > host_.options().head_bytes_max) {
        return refuse(plain_response(431, "the request's head is too long"));
    }
    stream_.async_read_some(buffer_.prepare(seen.empty() ? kFirstReadBytes : kNextReadBytes),
                            then([](Session& self, beast::error_code error, std::size_t bytes) {
                                if (error) return self.close();
                                self.buffer_.commit(bytes);
                                self.look_for_head();
                            }));
}

void Session::after_head(std::string_view raw) {
    if (raw.size() > host_.options().head_bytes_max) {
        return refuse(plain_response(431, "the request's head is too long"));
    }
    if (const auto fault = fault_of_raw_head(raw)) return refuse(plain_response(400, *fault));
    parser_.emplace();
    parser_->header_limit(std::numeric_limits<std::uint32_t>::max());  // Held above.
    parser_->body_limit(boost::none);                                  // Known after the head.
    beast::error_code error;
    const std::size_t used = parser_->put(asio::buffer(raw.data(), raw.size()), error);
    if (error || !parser_->is_header_done()) {
        return refuse(plain_response(400, "malformed request: " + error.message()));
    }
    route(used);
}

void Session::route(std::size_t head_bytes) {
    buffer_.consume(head_bytes);
    const auto& head = parser_->get();
    if (const auto fault = fault_of_head(head)) return refuse(plain_response(400, *fault));
    // Copied now, because trailers of a chunked body would be added to the parser's fields.
    request_ = {.method = std::string(head.method_string()), .target = std::string(head.target())};
    for (const auto& field : head) {
        request_.headers.add(std::string(field.name_string()), std::string(field.value()));
    }
    wants_head_only_ = request_.method == "HEAD";
    closes_after_write_ = !head.keep_alive();
    const bool expects_continue = head.version() == 11 && !parser_->is_done() &&
                                  to_lower(head[http::field::expect]) == "100-continue";
    const auto& streams = host_.options().streams;
    if (streams.selects && streams.selects(request_)) return hand_over(expects_continue);
    const std::size_t body_bytes_max = host_.options().body_bytes_max;
    if (parser_->content_length().value_or(0) > body_bytes_max) {
        return refuse(plain_response(413, "the request's body is too long"));
    }
    parser_->body_limit(body_bytes_max);
    parser_->eager(true);
    stream_.expires_after(host_.options().read_timeout);
    waits_since_ = host_.next_turn();
    expects_continue ? say_continue() : read_body();
}

void Session::hand_over(bool expects_continue) {
    if (!host_.has_room_for_stream()) return refuse(host_.options().streams.busy);
    // Botocore misreads the next answer on a connection where it asked for 100 and got the answer.
    const bool skips_continue = parser_->is_done() && !parser_->get()[http::field::expect].empty();
    StreamRequest request{.socket = {},
                          .head = std::move(request_),
                          .received = std::string(text_in(buffer_)),
                          .expects_continue = expects_continue,
                          .keeps_alive = !closes_after_write_ && !skips_continue,
                          .knows_chunks = parser_->get().version() == 11};
    if (!parser_->chunked()) request.body_bytes = parser_->content_length().value_or(0);
    beast::error_code failed;
    request.socket = UniqueFd(stream_.release_socket().release(failed));
    state_ = State::closed;
    SessionHost& host = host_;
    host.closed(*this);
    if (!failed) host.start_stream(std::move(request));
}

// Room is made as bytes come, for twice as many as have come: an announcement costs nothing, so it
// gets nothing.
bool Session::make_room_in_body() {
    auto& unfilled = parser_->get().body();
    if (unfilled.size > 0) return true;
    std::string& body = request_.body;
    const std::size_t filled = body.size();
    const std::size_t wanted = std::max(2 * filled, kFirstBodyBytes);
    const std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(
        wanted, parser_->content_length().value_or(host_.options().body_bytes_max)));
    if (bytes > kSmallBodyBytes) {
        if (!host_.reserve_body(*this, bytes - reserved_bytes_)) return false;
        reserved_bytes_ = bytes;
    }
    body.resize(bytes);
    unfilled.data = body.data() + filled;
    unfilled.size = bytes - filled;
    return true;
}

void Session::release_body() {
    if (reserved_bytes_ > 0) host_.release_body(std::exchange(reserved_bytes_, 0));
}

void Session::say_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      then([](Session& self, beast::error_code error, std::size_t) {
                          error ? self.close() : self.read_body();
                      }));
}

void Session::read_body() {
    if (parser_->is_done()) return after_body();
    if (!make_room_in_body()) {
        return refuse(plain_response(503, "too many long requests at once; try again"));
    }
    http::async_read_some(stream_, buffer_, *parser_,
                          then([](Session& self, beast::error_code error, std::size_t) {
                              const bool goes_on = !error || error == http::error::need_buffer;
                              goes_on ? self.read_body() : self.failed_to_read(error);
                          }));
}

void Session::after_body() {
    request_.body.resize(request_.body.size() - parser_->get().body().size);
    parser_.reset();
    state_ = State::waiting;
    waits_since_ = 0;
    stream_.expires_never();
    host_.dispatch(std::move(request_),
                   HttpReply(std::make_shared<SessionSink>(shared_from_this())));
}

void Session::failed_to_read(beast::error_code error) {
    if (error == http::error::buffer_overflow) {
        return refuse(plain_response(400, "a line of the chunked body is too long"));
    }
    if (error == http::error::body_limit) {
        return refuse(plain_response(413, "the request's body is too long"));
    }
    const bool malformed = error.category() == make_error_code(http::error::bad_method).category();
    const bool cut_off =
        error == http::error::end_of_stream || error == http::error::partial_message;
    if (!malformed || cut_off) return close();
    refuse(plain_response(400, "malformed request: " + error.message()));
}

// The rest of what the client sends is not read as a request any more.
void Session::refuse(HttpResponse response) {
    closes_after_write_ = true;
    lingers_after_write_ = true;
    parser_.reset();
    std::string().swap(request_.body);  // Assigning keeps the room.
    write(std::move(response));
}

void Session::post_reply(HttpResponse response) {
    loop_->post([self = shared_from_this(), response = std::move(response)]() mutable {
        if (self->state_ == State::waiting) self->write(std::move(response));
    });
}

void Session::write(HttpResponse response) {
    state_ = State::writing;
    waits_since_ = host_.next_turn();
    release_body();
    if (!is_safe(response.headers)) {
        log_error("a response header has an illegal character; the client was told 500");
        response = plain_response(500, "internal error");
    }
    answer_head_ =
        answer_head(response, {.bytes = response.body.size(), .closes = closes_after_write_});
    answer_body_ = std::move(response.body);
    const bool with_body = may_have_body(response.status) && !wants_head_only_;
    const std::array<asio::const_buffer, 2> pieces = {
        asio::buffer(answer_head_),
        asio::buffer(answer_body_, with_body ? answer_body_.size() : 0)};
    if (answer_body_.size() > kKeptByKernelBytesMax) drop_when_closed(stream_.socket(), true);
    stream_.expires_after(host_.options().read_timeout);
    asio::async_write(stream_, pieces,
                      then([](Session& self, beast::error_code error, std::size_t) {
                          error ? self.close() : self.after_write();
                      }));
}

void Session::after_write() {
    if (answer_body_.size() > kKeptByKernelBytesMax) drop_when_closed(stream_.socket(), false);
    std::string().swap(answer_body_);
    if (!closes_after_write_) return read_head();
    if (!lingers_after_write_) return close();
    drop_what_comes();
}

void Session::linger() {
    host_.opened(*this);
    drop_what_comes();
}

// Closing with unread bytes resets the connection, and the client might lose the answer that says
// why. So what it still sends is read and dropped for a while.
void Session::drop_what_comes() {
    if (!dropped_) {
        beast::error_code ignored;
        stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
        state_ = State::lingering;
        waits_since_ = host_.next_turn();
        stream_.expires_after(kLingerPatience);
        dropped_ = std::make_unique<std::array<char, 4096>>();
    }
    stream_.async_read_some(
        asio::buffer(*dropped_), then([](Session& self, beast::error_code error, std::size_t n) {
            self.dropped_bytes_ += n;
            error || self.dropped_bytes_ > kLingerBytesMax ? self.close() : self.drop_what_comes();
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
    release_body();
    stream_.close();
    host_.closed(*this);
}

}  // namespace gruca::net
