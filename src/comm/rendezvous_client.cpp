#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/boundary.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "comm/rendezvous.h"
#include "comm/rendezvous_wire.h"

namespace gruca::comm {
namespace {

constexpr std::chrono::milliseconds kRetryPauseMin{20};
constexpr std::chrono::milliseconds kRetryPauseMax{500};

void send_frame(const UniqueFd& fd, const Frame& frame) {
    const std::string bytes = encode(frame);
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const ssize_t count =
            send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot send to the rendezvous");
        sent += static_cast<std::size_t>(count);
    }
}

// The next frame, or nothing when the server has hung up.
std::optional<Frame> receive_frame(const UniqueFd& fd, FrameDecoder& decoder) {
    while (true) {
        if (auto frame = decoder.next()) return frame;
        std::array<char, 16384> bytes;
        const ssize_t count = recv(fd.get(), bytes.data(), bytes.size(), 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return std::nullopt;
        decoder.append(std::span(bytes).first(static_cast<std::size_t>(count)));
    }
}

void set_receive_timeout(const UniqueFd& fd, std::chrono::milliseconds timeout) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timeval value = {.tv_sec = seconds.count(),
                           .tv_usec = std::chrono::microseconds(timeout - seconds).count()};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
}

Ending ending_from(const Frame& frame) {
    const auto number = frame.texts.size() == 2 ? parse_int(frame.texts[0]) : std::nullopt;
    if (!number || *number < 0 || *number > static_cast<int>(ErrorCode::internal)) {
        throw Error(ErrorCode::data_loss, "the rendezvous sent an ending without code and reason");
    }
    return {.code = static_cast<ErrorCode>(*number), .reason = frame.texts[1]};
}

}  // namespace

class RendezvousClient::Connection {
  public:
    explicit Connection(const Options& options)
        : options_(options), decoder_(kFrameBytesMax), fd_(join()) {
        thread_ = std::jthread([this] { listen(); });
    }

    ~Connection() {
        {
            const std::lock_guard lock(mutex_);
            leaving_ = true;
        }
        // Whether it arrives does not matter to this rank any more.
        run_guarded([&] { send({.type = FrameType::leave}); });
        shutdown(fd_.get(), SHUT_RDWR);
    }

    void send(const Frame& frame) {
        const std::lock_guard lock(send_mutex_);
        send_frame(fd_, frame);
    }

    std::string get(std::string_view key, std::chrono::milliseconds timeout) {
        const std::string wanted(key);
        std::unique_lock lock(mutex_);
        if (!values_.contains(wanted) && asked_.insert(wanted).second) {
            lock.unlock();
            send({.type = FrameType::wait, .texts = {wanted}});
            lock.lock();
        }
        const bool in_time = changed_.wait_for(
            lock, timeout, [&] { return ending_ || server_left_ || values_.contains(wanted); });
        if (const auto value = values_.find(wanted); value != values_.end()) return value->second;
        if (ending_) throw Error(ending_->code, ending_->reason);
        if (in_time) throw Error(ErrorCode::unavailable, "the rendezvous has closed");
        throw Error(ErrorCode::deadline_exceeded, "no rank has set the key: " + wanted);
    }

    std::optional<Ending> wait_for_ending(std::chrono::milliseconds patience) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, patience, [&] { return ending_ || server_left_; });
        return ending_;
    }

  private:
    UniqueFd join() {
        CHECK(options_.secret.size() <= kSecretBytesMax, "{} bytes", options_.secret.size());
        const auto deadline = clock_.steady_now() + options_.join_timeout;
        std::chrono::milliseconds pause = kRetryPauseMin;
        Error last(ErrorCode::deadline_exceeded,
                   "no answer from the rendezvous of rank 0 at " + to_string(options_.server));
        while (true) {
            const auto left = std::chrono::duration_cast<Duration>(deadline - clock_.steady_now());
            if (left <= Duration(0)) throw Error(last);
            try {
                if (auto fd = try_connect(options_.server, left); fd && try_hello(*fd, left)) {
                    return std::move(*fd);
                }
            } catch (const Error& error) {
                // A server of another job may be one that is about to leave this address, and a
                // host name may not be known yet: both are tried again.
                if (error.code() != ErrorCode::permission_denied &&
                    error.code() != ErrorCode::not_found) {
                    throw;
                }
                last = error;
            }
            std::this_thread::sleep_for(std::min(pause, left));
            pause = std::min(pause * 2, kRetryPauseMax);
        }
    }

    // False when the server hung up without a word. Throws what it refused with.
    bool try_hello(const UniqueFd& fd, std::chrono::milliseconds patience) {
        decoder_ = FrameDecoder(kFrameBytesMax);
        set_receive_timeout(fd, patience);
        const auto error = run_guarded([&] {
            send_frame(fd, {.type = FrameType::hello,
                            .texts = {std::string(kRendezvousMagic), std::to_string(options_.size),
                                      std::to_string(options_.rank), options_.secret}});
        });
        if (error) return false;
        const auto answer = receive_frame(fd, decoder_);
        if (!answer) return false;
        if (answer->type == FrameType::refused) {
            const Ending refusal = ending_from(*answer);
            throw Error(refusal.code, refusal.reason + ", at " + to_string(options_.server));
        }
        if (answer->type != FrameType::welcome) {
            throw Error(ErrorCode::data_loss, "no rendezvous at " + to_string(options_.server));
        }
        set_receive_timeout(fd, std::chrono::milliseconds(0));  // None.
        return true;
    }

    void listen() {
        const auto error = run_guarded([&] {
            while (const auto frame = receive_frame(fd_, decoder_)) handle(*frame);
        });
        const std::string reason =
            error ? error->message() : std::string("rank 0, which keeps the rendezvous, is gone");
        finish(Ending{.code = ErrorCode::unavailable, .reason = reason});
    }

    void handle(const Frame& frame) {
        if (frame.type == FrameType::value && frame.texts.size() == 2) {
            const std::lock_guard lock(mutex_);
            values_[frame.texts[0]] = frame.texts[1];
            changed_.notify_all();
        } else if (frame.type == FrameType::ended) {
            finish(ending_from(frame));
        } else if (frame.type == FrameType::leave) {
            const std::lock_guard lock(mutex_);
            server_left_ = true;
            changed_.notify_all();
        } else {
            throw Error(ErrorCode::data_loss, "the rendezvous sent a frame out of place");
        }
    }

    void finish(const Ending& ending) {
        {
            const std::lock_guard lock(mutex_);
            if (ending_ || leaving_ || server_left_) return;
            ending_ = ending;
            changed_.notify_all();
        }
        if (options_.on_ending) options_.on_ending(ending);
    }

    const Options options_;
    const SystemClock clock_;
    FrameDecoder decoder_;  // Of the thread, once it runs.
    const UniqueFd fd_;
    std::mutex send_mutex_;  // Keeps frames whole.
    std::mutex mutex_;       // Guards the members below.
    std::condition_variable changed_;
    std::map<std::string, std::string> values_;
    std::set<std::string> asked_;
    std::optional<Ending> ending_;
    bool server_left_ = false;
    bool leaving_ = false;
    std::jthread thread_;  // Last: ends, by the shutdown above, before the rest goes.
};

RendezvousClient::RendezvousClient(const Options& options)
    : connection_(std::make_unique<Connection>(options)) {}

RendezvousClient::~RendezvousClient() = default;

void RendezvousClient::set(std::string_view key, std::string_view value) {
    CHECK(key.size() <= kKeyBytesMax && value.size() <= kValueBytesMax, "{} and {} bytes",
          key.size(), value.size());
    connection_->send({.type = FrameType::set, .texts = {std::string(key), std::string(value)}});
}

std::string RendezvousClient::get(std::string_view key, std::chrono::milliseconds timeout) {
    return connection_->get(key, timeout);
}

void RendezvousClient::abort(std::string_view reason) {
    connection_->send(
        {.type = FrameType::abort, .texts = {std::string(reason.substr(0, kValueBytesMax))}});
}

std::optional<Ending> RendezvousClient::ending() const {
    return connection_->wait_for_ending(std::chrono::milliseconds(0));
}

std::optional<Ending> RendezvousClient::wait_for_ending(std::chrono::milliseconds patience) const {
    return connection_->wait_for_ending(patience);
}

}  // namespace gruca::comm
