// comm/socket.h
//
// The few socket calls the rendezvous needs: IPv4, TCP, and every descriptor with an owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace gruca::comm {

struct Endpoint {
    std::string address;  // A host name or an IPv4 address.
    std::uint16_t port = 0;
};

std::string to_string(const Endpoint& endpoint);  // "algo-1:7777"

// Listens, without blocking on accept. Throws what bind says; not_found for an unknown host name.
UniqueFd listen_on(const Endpoint& endpoint);
std::uint16_t port_of(const UniqueFd& socket);

// A connected, blocking socket, or nothing when nobody answers within `patience`. Throws not_found
// for an unknown host name.
std::optional<UniqueFd> try_connect(const Endpoint& endpoint, std::chrono::milliseconds patience);

// The numeric address of a host name; throws not_found.
std::string resolve(const std::string& host);

}  // namespace gruca::comm
