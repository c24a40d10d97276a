#include "net/listener.h"

#include "base/error.h"
#include "base/log.h"

namespace gruca::net {
namespace {
namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kPause = std::chrono::milliseconds(100);  // Until descriptors may be free again.
constexpr int kBacklog = 1024;

}  // namespace

Listener::Listener(asio::io_context& context, const std::string& address, std::uint16_t port,
                   Accepted accepted)
    : accepted_(std::move(accepted)), acceptor_(context), pause_(context) {
    const std::string where = address + ":" + std::to_string(port);
    error_code error;
    const auto ip = asio::ip::make_address(address, error);
    if (error) throw Error(ErrorCode::unavailable, "cannot listen, not an IP address: " + where);
    const asio::ip::tcp::endpoint endpoint(ip, port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (error) {
        throw Error(ErrorCode::unavailable, "cannot listen on " + where + ": " + error.message());
    }
    port_ = acceptor_.local_endpoint().port();
}

void Listener::start() {
    acceptor_.async_accept([this](error_code error, asio::ip::tcp::socket socket) {
        if (stopped_ || error == asio::error::operation_aborted) return;
        if (error) return accept_later(error);
        failed_ = false;
        accepted_(std::move(socket));
        start();
    });
}

void Listener::accept_later(error_code error) {
    if (!failed_) log_warning("cannot accept connections: {}", error.message());
    failed_ = true;
    pause_.expires_after(kPause);
    pause_.async_wait([this](error_code cancelled) {
        if (!cancelled && !stopped_) start();
    });
}

void Listener::stop() {
    stopped_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
}

}  // namespace gruca::net
