// net/listener.h
//
// One address on which a server accepts connections. When accepting fails, most likely because no
// descriptor is left, it pauses and tries again.
//
// Made on any thread; everything else happens on the I/O thread of its context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace gruca::net {

class Listener {
  public:
    using Accepted = std::function<void(boost::asio::ip::tcp::socket)>;

    // Listens when this returns; connections wait until start(). Throws unavailable, naming address
    // and port, when it cannot.
    Listener(boost::asio::io_context& context, const std::string& address, std::uint16_t port,
             Accepted accepted);

    std::uint16_t port() const { return port_; }
    void start();
    void stop();

  private:
    void accept_later(boost::system::error_code error);

    const Accepted accepted_;
    boost::asio::ip::tcp::acceptor acceptor_;
    boost::asio::steady_timer pause_;
    std::uint16_t port_ = 0;
    bool failed_ = false;
    bool stopped_ = false;
};

}  // namespace gruca::net
