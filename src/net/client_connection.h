// net/client_connection.h
//
// One connection of a client to a server, which carries one request and its answer after the other.
//
// Owned by the call that uses it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/file.h"
#include "net/call_wait.h"
#include "net/http_answer.h"
#include "net/http_client.h"
#include "net/url.h"

namespace gruca::net {

class ClientConnection {
  public:
    // Throws unavailable with `origin` and the reason.
    ClientConnection(const Origin& origin, std::chrono::milliseconds time_max, CallWait& wait);

    // Nobody has closed it, and nothing has come that nobody asked for.
    bool is_idle() const;

    struct Call {
        const std::string& head;  // With its empty line.
        const HttpRequest& request;
        const HttpTransfer* transfer = nullptr;
    };
    enum class End { answered, cut_off, too_late };
    // After anything but `answered`, and after an exception, the connection is of no use any more.
    End exchange(const Call& call, HttpAnswer& answer, CallWait& wait);
    std::uint64_t uploaded() const { return uploaded_; }  // By the latest exchange.
    bool may_be_kept(const HttpAnswer& answer) const;

  private:
    // Nothing: go on.
    std::optional<End> send(std::string_view bytes, HttpAnswer& answer, CallWait& wait);
    std::optional<End> send_body(const Call& call, HttpAnswer& answer, CallWait& wait);
    std::optional<End> upload(const HttpTransfer& transfer, HttpAnswer& answer, CallWait& wait);
    std::optional<End> await_continue(HttpAnswer& answer, CallWait& wait);
    std::optional<End> receive(HttpAnswer& answer, CallWait& wait);

    UniqueFd socket_;
    std::vector<char> received_;
    std::size_t unread_ = 0;  // Bytes at the front of received_ that are not taken yet.
    std::uint64_t uploaded_ = 0;
    bool sent_all_ = false;
};

}  // namespace gruca::net
