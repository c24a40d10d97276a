// netlink/links.h
//
// The kernel's interfaces, addresses and routes, as far as nodes need them: bridges on the machine,
// and a pair of interfaces that leads from a bridge into the network namespace of a node. Speaks
// rtnetlink; needs CAP_NET_ADMIN, and throws permission_denied naming what it could not do.
//
// An interface dies with its namespace and takes the other end of its pair along, so nothing of a
// node is left when its processes have ended.
//
// Owned by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spec/subnet.h"

struct nl_sock;

namespace gruca::netlink {

struct InterfaceAddress {
    std::uint32_t address;
    int prefix;
};

// A node's end of a pair is called so, as SageMaker calls it.
constexpr const char* kNodeInterface = "eth0";

class Links {
  public:
    // Of the network namespace that the calling thread is in.
    Links();
    ~Links();
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;

    // The destinations of all routes in all tables, but for default routes.
    std::vector<spec::Subnet> routes() const;
    // The first IPv4 address of an interface; nothing when it has none or does not exist.
    std::optional<InterfaceAddress> address_of(const std::string& interface) const;
    bool exists(const std::string& interface) const;

    // A bridge that is up, with this address if any, and without IPv6. One that is there already
    // gets what it lacks.
    void make_bridge(const std::string& name, const std::optional<InterfaceAddress>& address) const;
    // With everything attached to it left alone but unconnected. A missing one is fine.
    void remove(const std::string& interface) const;

    // A pair of interfaces from `bridge` to kNodeInterface in the namespace of process `pid`. The
    // hardware address follows from `address`, so that what others remember of it stays true when
    // the address goes to the next node.
    void connect(const std::string& bridge, std::uint32_t address, pid_t pid) const;

    // In a node's namespace: lo and kNodeInterface come up; a default route if there is a gateway.
    void set_up_node(const InterfaceAddress& address, std::optional<std::uint32_t> gateway) const;
    // Likewise, with a route to each of `peers` and to nobody else. What comes from somebody else
    // is dropped, so that it does not help a program to send around the routes by SO_BINDTODEVICE.
    void set_up_isolated_node(const InterfaceAddress& address,
                              const std::vector<std::uint32_t>& peers) const;

  private:
    int index_of(const std::string& interface) const;
    void bring_up(const std::string& interface) const;
    void add_address(const std::string& interface, const InterfaceAddress& address,
                     bool with_route = true) const;
    void add_peer(std::uint32_t peer) const;

    struct Closer {
        void operator()(nl_sock* socket) const;
    };
    std::unique_ptr<nl_sock, Closer> socket_;
};

}  // namespace gruca::netlink
