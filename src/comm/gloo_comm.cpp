#include "comm/gloo_comm.h"

#include <fmt/format.h>
#include <gloo/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <set>

#include "base/boundary.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "comm/rendezvous.h"

namespace gruca::comm {
namespace {

// Numbers travel in segments of this size, which bounds the room for what the peers send.
constexpr std::size_t kSegmentBytes = 4u << 20;
// When a connection breaks, the reason is on its way over the rendezvous.
constexpr std::chrono::milliseconds kReasonPatience{1000};

// Gloo's view of our rendezvous.
class Store final : public gloo::rendezvous::Store {
  public:
    Store(RendezvousClient& client, std::chrono::milliseconds timeout)
        : client_(client), timeout_(timeout) {}

    void set(const std::string& key, const std::vector<char>& data) override {
        client_.set("gloo/" + key, std::string_view(data.data(), data.size()));
    }
    std::vector<char> get(const std::string& key) override {
        const std::string value = client_.get("gloo/" + key, timeout_);
        return {value.begin(), value.end()};
    }
    void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
    void wait(const std::vector<std::string>& keys,
              const std::chrono::milliseconds& /*timeout*/) override {
        for (const std::string& key : keys) client_.get("gloo/" + key, timeout_);
    }

  private:
    RendezvousClient& client_;
    const std::chrono::milliseconds timeout_;
};

// A connection to every other rank. gloo's own way to make them cannot be cut short: a rank that
// dies after it has said where it listens would hold up the others until time is up.
class Mesh final : public gloo::Context {
  public:
    Mesh(int own_rank, int ranks, std::chrono::milliseconds timeout)
        : gloo::Context(own_rank, ranks) {
        setTimeout(timeout);
    }

    // `check` throws when the group has ended; close() makes a connection in progress return.
    void connect(gloo::rendezvous::Store& store,
                 const std::shared_ptr<gloo::transport::Device>& device,
                 const std::function<void()>& check) {
        device_ = device;
        auto pairs = device->createContext(rank, size);
        pairs->setTimeout(getTimeout());
        std::vector<char> addresses;  // One of this rank for each other, all of one size.
        for (int peer = 0; peer < size; ++peer) {
            if (peer == rank) continue;
            const std::vector<char> address = pairs->createPair(peer)->address().bytes();
            address_bytes_ = address.size();
            addresses.insert(addresses.end(), address.begin(), address.end());
        }
        {
            const std::lock_guard lock(mutex_);
            transportContext_ = pairs;
        }
        store.set(key_of(rank), addresses);
        for (int peer = 0; peer < size; ++peer) {
            if (peer == rank) continue;
            const std::vector<char> all = store.get(key_of(peer));
            check();
            pairs->getPair(peer)->connect(address_in(all, peer));
            check();
        }
    }

    // From any thread: nothing waits for a connection any more.
    void close() {
        const std::lock_guard lock(mutex_);
        if (transportContext_) closeConnections();
    }

  private:
    static std::string key_of(int of) { return "addresses/" + std::to_string(of); }

    // Where `peer` listens for this rank: it has left out itself.
    std::vector<char> address_in(const std::vector<char>& all, int peer) const {
        const auto index = static_cast<std::size_t>(rank < peer ? rank : rank - 1);
        if (all.size() != address_bytes_ * static_cast<std::size_t>(size - 1)) {
            throw Error(ErrorCode::data_loss,
                        fmt::format("rank {} does not say where it is", peer));
        }
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(index * address_bytes_);
        return {begin, begin + static_cast<std::ptrdiff_t>(address_bytes_)};
    }

    std::size_t address_bytes_ = 0;
    std::mutex mutex_;  // Guards transportContext_ against close().
};

// The elements of `count` that rank `index` of `parts` adds up.
struct Share {
    std::size_t begin;
    std::size_t end;
    std::size_t size() const { return end - begin; }
};

Share share_of(std::size_t count, std::size_t parts, std::size_t index) {
    return {.begin = count * index / parts, .end = count * (index + 1) / parts};
}

// One of several exchanges that make up a collective: what goes to and comes from one peer.
struct Exchange {
    int peer;
    std::span<const std::byte> out = {};
    std::span<std::byte> in = {};
};

}  // namespace

class GlooComm final : public Comm {
  public:
    explicit GlooComm(const GlooOptions& options);
    ~GlooComm() override;

    int rank() const override { return options_.rank; }
    int size() const override { return options_.size; }

    void all_reduce_sum(std::span<float> values) override { sum(values); }
    void all_reduce_sum(std::span<double> values) override { sum(values); }
    void broadcast(std::span<std::byte> bytes, int root) override;
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
    void barrier() override;
    void abort(std::string_view reason) noexcept override;

  private:
    using Buffer = gloo::transport::UnboundBuffer;

    // Of the collective under way, for messages and to tell collectives apart on the wire.
    struct Activity {
        const char* name;
        std::size_t bytes;
    };

    void begin(const char* name, std::size_t bytes);
    std::string activity_text() const;

    template <class Real>
    void sum(std::span<Real> values);
    template <class Real>
    void sum_segment(std::span<Real> segment);
    template <class Real>
    void add_in_rank_order(std::span<Real> mine, std::span<Real> received);

    void run(const std::vector<Exchange>& exchanges);
    bool wait(Buffer& buffer, bool sending);
    void await(Buffer& buffer, int peer, bool sending);
    [[noreturn]] void fail(int peer, bool was_in_time, const std::string& detail);
    void end(const Ending& ending);
    void throw_if_ended();

    template <class Visit>
    void for_each_peer(Visit&& visit) const {
        for (int peer = 0; peer < size(); ++peer) {
            if (peer != rank()) visit(peer);
        }
    }

    const GlooOptions options_;
    const SystemClock clock_;
    Activity activity_ = {.name = "", .bytes = 0};
    std::uint64_t collectives_ = 0;  // Begun so far.
    std::uint64_t exchanges_ = 0;    // Numbered alike on all ranks.
    std::vector<std::byte> received_;
    std::mutex mutex_;              // Guards the members below; context_ until it is connected.
    std::optional<Ending> ending_;  // No collective after this.
    std::set<Buffer*> waited_for_;  // By the rank's thread; freed when the group ends.
    std::shared_ptr<Mesh> context_;
    bool is_connected_ = false;                   // From then on an ending aborts waits instead.
    std::optional<RendezvousClient> rendezvous_;  // Last: its thread calls end().
};

GlooComm::GlooComm(const GlooOptions& options) : options_(options) {
    CHECK(options.size > 0 && options.rank >= 0 && options.rank < options.size, "rank {} of {}",
          options.rank, options.size);
    std::signal(SIGPIPE, SIG_IGN);
    rendezvous_.emplace(
        RendezvousClient::Options{.server = options.rendezvous,
                                  .rank = options.rank,
                                  .size = options.size,
                                  .secret = options.secret,
                                  .join_timeout = options.join_timeout,
                                  .on_ending = [this](const Ending& why) { end(why); }});
    Store store(*rendezvous_, options.join_timeout);
    try {
        auto device = gloo::transport::tcp::CreateDevice(
            gloo::transport::tcp::attr(resolve(options.own_host).c_str()));
        // Gloo waits five times as long for a connection, and the others are known to be there.
        auto mesh = std::make_shared<Mesh>(options.rank, options.size, options.join_timeout / 5);
        {
            const std::lock_guard lock(mutex_);
            context_ = mesh;
        }
        mesh->connect(store, device, [this] { throw_if_ended(); });
        const std::lock_guard lock(mutex_);
        is_connected_ = true;
    } catch (const std::runtime_error& error) {  // All that Gloo throws.
        throw_if_ended();
        throw Error(ErrorCode::unavailable,
                    fmt::format("rank {} cannot connect to the other ranks from {}: {}",
                                options.rank, options.own_host, error.what()));
    }
}

GlooComm::~GlooComm() {
    rendezvous_.reset();
    context_.reset();
}

void GlooComm::begin(const char* name, std::size_t bytes) {
    activity_ = {.name = name, .bytes = bytes};
    ++collectives_;
    throw_if_ended();
}

std::string GlooComm::activity_text() const {
    return fmt::format("{} of {} bytes, collective {} of this job", activity_.name, activity_.bytes,
                       collectives_);
}

template <class Real>
void GlooComm::sum(std::span<Real> values) {
    begin(sizeof(Real) == 4 ? "all_reduce_sum(float)" : "all_reduce_sum(double)",
          values.size_bytes());
    constexpr std::size_t kSegment = kSegmentBytes / sizeof(Real);
    while (!values.empty() && size() > 1) {
        const auto segment = values.first(std::min(values.size(), kSegment));
        sum_segment(segment);
        values = values.subspan(segment.size());
    }
}

template <class Real>
void GlooComm::sum_segment(std::span<Real> segment) {
    const auto ranks = static_cast<std::size_t>(size());
    const auto part = [&](int of) {
        const Share share = share_of(segment.size(), ranks, static_cast<std::size_t>(of));
        return segment.subspan(share.begin, share.size());
    };
    const std::span<Real> mine = part(rank());

    received_.resize(std::max(received_.size(), mine.size_bytes() * ranks));
    const auto received_from = [&](int peer) {
        return std::span(received_).subspan(static_cast<std::size_t>(peer) * mine.size_bytes(),
                                            mine.size_bytes());
    };
    std::vector<Exchange> scatter;
    std::vector<Exchange> gather;
    for_each_peer([&](int peer) {
        scatter.push_back(
            {.peer = peer, .out = std::as_bytes(part(peer)), .in = received_from(peer)});
        gather.push_back(
            {.peer = peer, .out = std::as_bytes(mine), .in = std::as_writable_bytes(part(peer))});
    });
    run(scatter);
    add_in_rank_order(mine,
                      std::span(reinterpret_cast<Real*>(received_.data()), mine.size() * ranks));
    run(gather);
}

// `received` holds one part per rank, and nothing in the place of this rank's own. It is used up.
template <class Real>
void GlooComm::add_in_rank_order(std::span<Real> mine, std::span<Real> received) {
    const auto ranks = static_cast<std::size_t>(size());
    const auto own = static_cast<std::size_t>(rank());
    const auto part = [&](std::size_t of) {
        return of == own ? mine : received.subspan(of * mine.size(), mine.size());
    };
    const std::span<Real> total = part(0);
    for (std::size_t of = 1; of < ranks; ++of) {
        const std::span<const Real> more = part(of);
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += more[i];
    }
    if (own != 0) std::copy(total.begin(), total.end(), mine.begin());
}

void GlooComm::broadcast(std::span<std::byte> bytes, int root) {
    CHECK(root >= 0 && root < size(), "root {} of {} ranks", root, size());
    begin("broadcast", bytes.size());
    std::vector<Exchange> exchanges;
    if (rank() == root) {
        for_each_peer([&](int peer) { exchanges.push_back({.peer = peer, .out = bytes}); });
    } else {
        exchanges.push_back({.peer = root, .in = bytes});
    }
    run(exchanges);
}

void GlooComm::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    CHECK(all.size() == mine.size() * static_cast<std::size_t>(size()),
          "room for {} bytes, {} ranks of {}", all.size(), size(), mine.size());
    begin("all_gather", mine.size());
    const auto part = [&](int of) {
        return all.subspan(static_cast<std::size_t>(of) * mine.size(), mine.size());
    };
    std::vector<Exchange> exchanges;
    for_each_peer(
        [&](int peer) { exchanges.push_back({.peer = peer, .out = mine, .in = part(peer)}); });
    run(exchanges);
    std::copy(mine.begin(), mine.end(), part(rank()).begin());
}

void GlooComm::barrier() {
    begin("barrier", 0);
    const std::byte here{1};
    std::vector<std::byte> others(static_cast<std::size_t>(size()));
    std::vector<Exchange> exchanges;
    for_each_peer([&](int peer) {
        exchanges.push_back({.peer = peer,
                             .out = std::span(&here, 1),
                             .in = std::span(others).subspan(static_cast<std::size_t>(peer), 1)});
    });
    run(exchanges);
}

// Starts all, then waits for all. Nothing is sent for an empty part.
void GlooComm::run(const std::vector<Exchange>& exchanges) {
    struct Pending {
        int peer;
        bool sending;
        std::unique_ptr<Buffer> buffer;
    };
    // Messages of different collectives never meet: the slot holds which exchange this is, and a
    // fingerprint of what the ranks think it is.
    const std::uint64_t fingerprint =
        (std::hash<std::string_view>()(activity_.name) ^ (activity_.bytes * 0x9e3779b97f4a7c15u)) &
        0xffffffu;
    const std::uint64_t slot = (++exchanges_ << 24) | fingerprint;
    std::vector<Pending> pending;
    int peer = -1;
    try {
        for (const Exchange& exchange : exchanges) {
            peer = exchange.peer;
            if (!exchange.in.empty()) {
                auto buffer = context_->createUnboundBuffer(exchange.in.data(), exchange.in.size());
                buffer->recv(peer, slot);
                pending.push_back({.peer = peer, .sending = false, .buffer = std::move(buffer)});
            }
            if (!exchange.out.empty()) {
                // Gloo takes a plain pointer and only reads from it.
                auto buffer = context_->createUnboundBuffer(
                    const_cast<std::byte*>(exchange.out.data()), exchange.out.size());
                buffer->send(peer, slot);
                pending.push_back({.peer = peer, .sending = true, .buffer = std::move(buffer)});
            }
        }
    } catch (const std::runtime_error& error) {
        fail(peer, true, error.what());
    }
    for (const Pending& one : pending) await(*one.buffer, one.peer, one.sending);
}

void GlooComm::await(Buffer& buffer, int peer, bool sending) {
    const auto start = clock_.steady_now();
    bool was_freed = false;
    std::string detail;
    try {
        was_freed = !wait(buffer, sending);
    } catch (const std::runtime_error& error) {
        detail = error.what();
    }
    if (detail.empty() && !was_freed) return;
    throw_if_ended();
    fail(peer, clock_.steady_now() - start < options_.timeout, detail);
}

// False when the wait was cut short because the group ended.
bool GlooComm::wait(Buffer& buffer, bool sending) {
    {
        const std::lock_guard lock(mutex_);
        if (ending_) return false;
        waited_for_.insert(&buffer);
    }
    const auto no_more = [&] {
        const std::lock_guard lock(mutex_);
        waited_for_.erase(&buffer);
    };
    bool is_done = false;
    try {
        is_done = sending ? buffer.waitSend(options_.timeout) : buffer.waitRecv(options_.timeout);
    } catch (const std::runtime_error&) {
        no_more();
        throw;
    }
    no_more();
    return is_done;
}

// A connection broke, or time is up. If the rendezvous knows more, that is the reason.
void GlooComm::fail(int peer, bool was_in_time, const std::string& detail) {
    if (was_in_time) {
        if (const auto known = rendezvous_->wait_for_ending(kReasonPatience)) end(*known);
        throw_if_ended();
    }
    const Ending ending =
        was_in_time ? Ending{.code = ErrorCode::unavailable,
                             .reason = fmt::format("lost the connection to rank {} in {}: {}", peer,
                                                   activity_text(), detail)}
                    : Ending{.code = ErrorCode::deadline_exceeded,
                             .reason = fmt::format("no word from rank {} within {} ms, in {}", peer,
                                                   options_.timeout.count(), activity_text())};
    end(ending);
    throw Error(ending.code, ending.reason);
}

// From any thread. The first ending counts.
void GlooComm::end(const Ending& ending) {
    const std::lock_guard lock(mutex_);
    if (!ending_) ending_ = ending;
    if (context_ && !is_connected_) context_->close();
    for (Buffer* buffer : waited_for_) {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
    }
}

void GlooComm::throw_if_ended() {
    const std::lock_guard lock(mutex_);
    if (ending_) throw Error(ending_->code, ending_->reason);
}

void GlooComm::abort(std::string_view reason) noexcept {
    end({.code = ErrorCode::cancelled,
         .reason = fmt::format("rank {} aborted: {}", rank(), reason)});
    // When the rendezvous is out of reach, the others have learned of the end from that.
    run_guarded([&] { rendezvous_->abort(reason); });
}

std::unique_ptr<Comm> make_gloo_comm(const GlooOptions& options) {
    return std::make_unique<GlooComm>(options);
}

}  // namespace gruca::comm
