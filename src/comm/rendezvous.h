// comm/rendezvous.h
//
// Where the ranks of one job find each other, and how they learn that one is gone. Rank 0 runs the
// server at an address all know; every rank, rank 0 too, is a client. Clients leave small values
// under keys, wait for those of others, and stay connected for the life of the job: when one
// disappears or aborts, the server tells all the others at once.
//
//   RendezvousServer   accepts ranks of its own job only: magic, version, size and secret must
//                      match. A stranger is refused and changes nothing. A key is set once.
//   RendezvousClient   keeps trying until it is in, or until the deadline; gets wait; one ending,
//                      delivered once.
//
// The secret keeps jobs apart that meet by mistake. It crosses the network in the clear, so it is
// no defence against someone who reads the wire.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "comm/socket.h"

namespace gruca::comm {

inline constexpr std::size_t kSecretBytesMax = 256;
inline constexpr std::size_t kKeyBytesMax = 256;
inline constexpr std::size_t kValueBytesMax = 64u << 10;
inline constexpr std::size_t kKeysMax = 100'000;
inline constexpr std::size_t kRanksMax = 4096;

// Why the ranks stopped being a group.
struct Ending {
    ErrorCode code;  // cancelled: a rank aborted. unavailable: a rank, or the server, is gone.
    std::string reason;
};

class RendezvousServer final {
  public:
    struct Options {
        Endpoint endpoint;  // Port 0: any free one.
        int size;
        std::string secret;
        // A connection that has not said hello by then is closed.
        std::chrono::milliseconds hello_timeout = std::chrono::seconds(10);
    };

    explicit RendezvousServer(const Options& options);
    // Passes on what ranks have said, then tells those still connected that it leaves.
    ~RendezvousServer();
    RendezvousServer(const RendezvousServer&) = delete;
    RendezvousServer& operator=(const RendezvousServer&) = delete;

    std::uint16_t port() const;

  private:
    class Loop;
    std::unique_ptr<Loop> loop_;
};

class RendezvousClient final {
  public:
    struct Options {
        Endpoint server;
        int rank;
        int size;
        std::string secret;
        std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
        // Called once, on a thread of the client, when the group ends. Must not block.
        std::function<void(const Ending&)> on_ending = {};
    };

    // Returns when the server has taken this rank in. Throws deadline_exceeded when no server
    // answered in time, permission_denied when the one that answers is of another job,
    // invalid_argument when this rank or size contradicts what the server knows.
    explicit RendezvousClient(const Options& options);
    // Leaves in order: the others are not told that this rank is gone.
    ~RendezvousClient();
    RendezvousClient(const RendezvousClient&) = delete;
    RendezvousClient& operator=(const RendezvousClient&) = delete;

    void set(std::string_view key, std::string_view value);
    // Waits until some rank has set it. Throws deadline_exceeded, or the ending.
    std::string get(std::string_view key, std::chrono::milliseconds timeout);

    // Ends the group for every rank, this one included.
    void abort(std::string_view reason);

    std::optional<Ending> ending() const;
    // Waits for an ending that may be on its way.
    std::optional<Ending> wait_for_ending(std::chrono::milliseconds patience) const;

  private:
    class Connection;
    std::unique_ptr<Connection> connection_;
};

}  // namespace gruca::comm
