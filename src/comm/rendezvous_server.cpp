#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/boundary.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/rendezvous.h"
#include "comm/rendezvous_wire.h"

namespace gruca::comm {
namespace {

constexpr std::size_t kStrangersMax = 64;  // Connections beyond this that have not said hello.
constexpr std::chrono::milliseconds kFlushPatience{1000};  // For the last words at the end.
constexpr std::size_t kOutgoingBytesMax = 16u << 20;       // To one client that does not read.

using SteadyTime = std::chrono::steady_clock::time_point;

struct Peer {
    explicit Peer(UniqueFd socket, SteadyTime deadline)
        : fd(std::move(socket)), decoder(kHelloBytesMax), hello_deadline(deadline) {}

    bool is_in() const { return rank >= 0; }

    UniqueFd fd;
    FrameDecoder decoder;
    SteadyTime hello_deadline;
    int rank = -1;          // Until it has said hello.
    std::string outgoing;   // Not yet taken by the operating system.
    bool hang_up = false;   // Once everything is sent.
    bool gone = false;      // To be removed.
    bool has_left = false;  // In order.
    std::set<std::string> waits_for;
};

// Equal texts take as long as different ones, whatever they have in common.
bool same_secret(std::string_view a, std::string_view b) {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
    }
    return difference == 0;
}

std::string code_text(ErrorCode code) {
    return std::to_string(static_cast<int>(code));
}

}  // namespace

// One thread owns everything here except `wake_` and `stopping_`.
class RendezvousServer::Loop {
  public:
    explicit Loop(const Options& options)
        : options_(options),
          listener_(listen_on(options.endpoint)),
          wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        CHECK(options.size > 0 && options.size <= static_cast<int>(kRanksMax), "{} ranks",
              options.size);
        CHECK(options.secret.size() <= kSecretBytesMax, "{} bytes", options.secret.size());
        if (!wake_.is_open()) throw_errno("cannot open an eventfd");
        joined_.resize(static_cast<std::size_t>(options.size));
        thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
    }

    ~Loop() {
        thread_.request_stop();
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
    }

    std::uint16_t port() const { return port_of(listener_); }

  private:
    void run(const std::stop_token& stop) {
        const auto error = run_guarded([&] {
            while (!stop.stop_requested()) turn(next_patience());
            std::uint64_t wakes = 0;
            [[maybe_unused]] const auto count = read(wake_.get(), &wakes, sizeof wakes);
            turn(Duration(0));  // What has been said before the end is passed on.
            for (Peer& peer : peers_) send(peer, {.type = FrameType::leave});
            const SteadyTime deadline = clock_.steady_now() + kFlushPatience;
            while (anything_to_send() && clock_.steady_now() < deadline) turn(Duration(10));
        });
        if (error) log_error("rendezvous: {}", error->what());
    }

    Duration next_patience() const {
        SteadyTime soonest = clock_.steady_now() + std::chrono::minutes(1);
        for (const Peer& peer : peers_) {
            if (!peer.is_in()) soonest = std::min(soonest, peer.hello_deadline);
        }
        const auto left = std::chrono::ceil<Duration>(soonest - clock_.steady_now());
        return std::max(left, Duration(0));
    }

    bool anything_to_send() const {
        return std::any_of(peers_.begin(), peers_.end(),
                           [](const Peer& peer) { return !peer.outgoing.empty(); });
    }

    // Waits for something to happen and does it.
    void turn(Duration patience) {
        std::vector<pollfd> polled = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                      {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
        for (const Peer& peer : peers_) {
            const short wanted = peer.outgoing.empty() ? POLLIN : POLLIN | POLLOUT;
            polled.push_back({.fd = peer.fd.get(), .events = wanted, .revents = 0});
        }
        if (poll(polled.data(), polled.size(), static_cast<int>(patience.count())) < 0) {
            if (errno == EINTR) return;
            throw_errno("cannot wait for ranks");
        }
        auto at = polled.begin() + 2;
        for (Peer& peer : peers_) serve(peer, *at++);
        if (polled[1].revents != 0) accept_one();
        for (Peer& peer : peers_) {
            if (peer.gone) note_gone(peer);
        }
        peers_.remove_if([](const Peer& peer) { return peer.gone; });
    }

    void accept_one() {
        UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd.is_open()) return;  // Gone again, or out of descriptors: the client will retry.
        const auto strangers = std::count_if(peers_.begin(), peers_.end(),
                                             [](const Peer& peer) { return !peer.is_in(); });
        if (static_cast<std::size_t>(strangers) >= kStrangersMax + joined_.size()) return;
        peers_.emplace_back(std::move(fd), clock_.steady_now() + options_.hello_timeout);
    }

    void serve(Peer& peer, const pollfd& happened) {
        if ((happened.revents & POLLOUT) != 0) flush(peer);
        if ((happened.revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive(peer);
        if (!peer.is_in() && clock_.steady_now() >= peer.hello_deadline) peer.gone = true;
    }

    void receive(Peer& peer) {
        std::array<char, 16384> bytes;
        const ssize_t count = recv(peer.fd.get(), bytes.data(), bytes.size(), 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) {
            peer.gone = true;
            return;
        }
        if (peer.hang_up) return;
        try {
            peer.decoder.append(std::span(bytes).first(static_cast<std::size_t>(count)));
            while (auto frame = peer.decoder.next()) {
                handle(peer, *frame);
                if (peer.hang_up) return;
            }
        } catch (const Error& error) {
            // Whoever does not speak our protocol is dropped; that is no failure of the job.
            log_warning("rendezvous: dropped a connection: {}", error.message());
            peer.gone = true;
        }
    }

    void handle(Peer& peer, const Frame& frame) {
        const auto require = [](bool condition, const char* what) {
            if (!condition) throw Error(ErrorCode::data_loss, what);
        };
        if (!peer.is_in()) {
            require(frame.type == FrameType::hello, "a stranger did not say hello first");
            return greet(peer, frame);
        }
        const std::size_t texts = frame.texts.size();
        switch (frame.type) {
            case FrameType::set:
                require(texts == 2, "set needs a key and a value");
                return set(frame.texts[0], frame.texts[1]);
            case FrameType::wait:
                require(texts == 1 && frame.texts[0].size() <= kKeyBytesMax, "wait needs a key");
                require(peer.waits_for.size() < kKeysMax, "a rank waits for too many keys");
                peer.waits_for.insert(frame.texts[0]);
                return answer(peer, frame.texts[0]);
            case FrameType::abort:
                require(texts == 1, "abort needs a reason");
                return end(ErrorCode::cancelled,
                           "rank " + std::to_string(peer.rank) + " aborted: " + frame.texts[0]);
            case FrameType::leave:
                peer.has_left = true;
                return;
            default:
                require(false, "a rank sent a frame that only servers send");
        }
    }

    void greet(Peer& peer, const Frame& frame) {
        const auto& texts = frame.texts;
        if (texts.size() != 4 || texts[0] != kRendezvousMagic) {
            throw Error(ErrorCode::data_loss, "a hello of some other protocol");
        }
        const auto size = parse_int(texts[1]);
        const auto rank = parse_int(texts[2]);
        if (!same_secret(texts[3], options_.secret)) {
            return refuse(peer, ErrorCode::permission_denied,
                          "this is the rendezvous of another job");
        }
        if (size != options_.size || !rank || *rank < 0 || *rank >= options_.size) {
            return refuse(
                peer, ErrorCode::invalid_argument,
                "rank " + texts[2] + " of " + texts[1] +
                    " does not belong to a job of ranks: " + std::to_string(options_.size));
        }
        if (joined_[static_cast<std::size_t>(*rank)]) {
            return refuse(peer, ErrorCode::invalid_argument, "someone else is rank " + texts[2]);
        }
        joined_[static_cast<std::size_t>(*rank)] = true;
        peer.rank = static_cast<int>(*rank);
        peer.decoder.set_frame_bytes_max(kFrameBytesMax);
        send(peer, {.type = FrameType::welcome});
        if (ending_) send_ending(peer);
    }

    void refuse(Peer& peer, ErrorCode code, const std::string& reason) {
        send(peer, {.type = FrameType::refused, .texts = {code_text(code), reason}});
        peer.hang_up = true;
        if (peer.outgoing.empty()) peer.gone = true;
    }

    void set(const std::string& key, const std::string& value) {
        if (key.size() > kKeyBytesMax || value.size() > kValueBytesMax ||
            values_.size() >= kKeysMax || !values_.emplace(key, value).second) {
            throw Error(ErrorCode::data_loss, "a key was set twice, or is too large: " + key);
        }
        for (Peer& peer : peers_) answer(peer, key);
    }

    void answer(Peer& peer, const std::string& key) {
        const auto value = values_.find(key);
        if (value == values_.end() || peer.waits_for.erase(key) == 0) return;
        send(peer, {.type = FrameType::value, .texts = {key, value->second}});
    }

    void note_gone(const Peer& peer) {
        if (!peer.is_in() || peer.has_left) return;
        end(ErrorCode::unavailable, "rank " + std::to_string(peer.rank) + " is gone");
    }

    void end(ErrorCode code, const std::string& reason) {
        if (ending_) return;
        ending_ = Ending{.code = code, .reason = reason};
        for (Peer& peer : peers_) {
            if (peer.is_in()) send_ending(peer);
        }
    }

    void send_ending(Peer& peer) {
        send(peer,
             {.type = FrameType::ended, .texts = {code_text(ending_->code), ending_->reason}});
    }

    void send(Peer& peer, const Frame& frame) {
        if (peer.gone) return;
        peer.outgoing += encode(frame);
        if (peer.outgoing.size() > kOutgoingBytesMax) peer.gone = true;
        flush(peer);
    }

    void flush(Peer& peer) {
        while (!peer.outgoing.empty()) {
            const ssize_t count =
                ::send(peer.fd.get(), peer.outgoing.data(), peer.outgoing.size(), MSG_NOSIGNAL);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && errno == EAGAIN) return;
            if (count < 0) {
                peer.outgoing.clear();
                peer.gone = true;
                return;
            }
            peer.outgoing.erase(0, static_cast<std::size_t>(count));
        }
        if (peer.hang_up) peer.gone = true;
    }

    const Options options_;
    const SystemClock clock_;
    const UniqueFd listener_;
    const UniqueFd wake_;
    std::list<Peer> peers_;
    std::vector<bool> joined_;  // By rank: taken in, once and for all.
    std::map<std::string, std::string> values_;
    std::optional<Ending> ending_;
    std::jthread thread_;  // Last: stops before the rest goes.
};

RendezvousServer::RendezvousServer(const Options& options)
    : loop_(std::make_unique<Loop>(options)) {}

RendezvousServer::~RendezvousServer() = default;

std::uint16_t RendezvousServer::port() const {
    return loop_->port();
}

}  // namespace gruca::comm
