#include "netlink/links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/route.h>
#include <netlink/socket.h>

#include <array>
#include <cstring>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::netlink {
namespace {

template <auto release>
struct Release {
    template <class T>
    void operator()(T* object) const {
        release(object);
    }
};
using Address = std::unique_ptr<nl_addr, Release<nl_addr_put>>;
using Link = std::unique_ptr<rtnl_link, Release<rtnl_link_put>>;
using InterfaceAddressObject = std::unique_ptr<rtnl_addr, Release<rtnl_addr_put>>;
using Route = std::unique_ptr<rtnl_route, Release<rtnl_route_put>>;
using Cache = std::unique_ptr<nl_cache, Release<nl_cache_free>>;

void require(int result, const std::string& what) {
    if (result >= 0) return;
    const bool refused = result == -NLE_PERM || result == -NLE_NOACCESS;
    throw Error(refused ? ErrorCode::permission_denied : ErrorCode::unavailable,
                fmt::format("cannot {}: {}", what, nl_geterror(result)));
}

Address ipv4(std::uint32_t address, int prefix) {
    const std::uint32_t on_the_wire = htonl(address);
    Address made(nl_addr_build(AF_INET, &on_the_wire, sizeof on_the_wire));
    if (!made) throw std::bad_alloc();
    nl_addr_set_prefixlen(made.get(), prefix);
    return made;
}

// Locally administered, and different for every address.
Address hardware_address(std::uint32_t address) {
    const std::array<unsigned char, 6> bytes = {0x02,
                                                0x67,
                                                static_cast<unsigned char>(address >> 24),
                                                static_cast<unsigned char>(address >> 16),
                                                static_cast<unsigned char>(address >> 8),
                                                static_cast<unsigned char>(address)};
    Address made(nl_addr_build(AF_LLC, bytes.data(), bytes.size()));
    if (!made) throw std::bad_alloc();
    return made;
}

std::uint32_t number_of(nl_addr* address) {
    std::uint32_t on_the_wire = 0;
    if (nl_addr_get_len(address) == sizeof on_the_wire) {
        std::memcpy(&on_the_wire, nl_addr_get_binary_addr(address), sizeof on_the_wire);
    }
    return ntohl(on_the_wire);
}

// The machine's end of a node's pair. Addresses are unique among living nodes.
std::string machine_end(std::uint32_t address) {
    return fmt::format("gruca{:08x}", address);
}

constexpr const char* kInterfaceSettings = "/proc/sys/net/ipv4/conf/";

void switch_ipv6_off(const std::string& interface) {
    // A kernel without IPv6 has no such file.
    run_guarded([&] {
        write_all(
            open_file("/proc/sys/net/ipv6/conf/" + interface + "/disable_ipv6", O_WRONLY).get(),
            bytes_of("1"));
    });
}

// The higher of the two counts.
bool drops_what_has_no_way_back() {
    const std::string here = std::string(kInterfaceSettings) + kNodeInterface + "/rp_filter";
    const std::string everywhere = std::string(kInterfaceSettings) + "all/rp_filter";
    return trim(read_file(here)) != "0" || trim(read_file(everywhere)) != "0";
}

void drop_what_has_no_way_back() {
    const std::string here = std::string(kInterfaceSettings) + kNodeInterface + "/rp_filter";
    run_guarded([&] { write_all(open_file(here, O_WRONLY).get(), bytes_of("1")); });
    if (drops_what_has_no_way_back()) return;
    throw Error(ErrorCode::unavailable,
                "isolated jobs cannot be kept apart here: /proc/sys is read-only; set "
                "net.ipv4.conf.all.rp_filter=1 on this machine");
}

}  // namespace

void Links::Closer::operator()(nl_sock* socket) const {
    nl_socket_free(socket);
}

Links::Links() : socket_(nl_socket_alloc()) {
    if (!socket_) throw std::bad_alloc();
    require(nl_connect(socket_.get(), NETLINK_ROUTE), "talk to the kernel of its network");
}

Links::~Links() = default;

std::vector<spec::Subnet> Links::routes() const {
    nl_cache* raw = nullptr;
    require(rtnl_route_alloc_cache(socket_.get(), AF_INET, 0, &raw), "read the machine's routes");
    const Cache cache(raw);
    std::vector<spec::Subnet> found;
    for (nl_object* one = nl_cache_get_first(raw); one != nullptr; one = nl_cache_get_next(one)) {
        nl_addr* to = rtnl_route_get_dst(reinterpret_cast<rtnl_route*>(one));
        if (to == nullptr || nl_addr_get_prefixlen(to) == 0) continue;
        found.push_back(
            {.base = number_of(to), .prefix = static_cast<int>(nl_addr_get_prefixlen(to))});
    }
    return found;
}

int Links::index_of(const std::string& interface) const {
    rtnl_link* raw = nullptr;
    const int result = rtnl_link_get_kernel(socket_.get(), 0, interface.c_str(), &raw);
    const Link link(raw);
    if (result == -NLE_OBJ_NOTFOUND || result == -NLE_NODEV) return 0;
    require(result, "look for the interface " + interface);
    return rtnl_link_get_ifindex(raw);
}

bool Links::exists(const std::string& interface) const {
    return index_of(interface) != 0;
}

std::optional<InterfaceAddress> Links::address_of(const std::string& interface) const {
    const int index = index_of(interface);
    if (index == 0) return std::nullopt;
    nl_cache* raw = nullptr;
    require(rtnl_addr_alloc_cache(socket_.get(), &raw), "read the machine's addresses");
    const Cache cache(raw);
    for (nl_object* one = nl_cache_get_first(raw); one != nullptr; one = nl_cache_get_next(one)) {
        auto* const object = reinterpret_cast<rtnl_addr*>(one);
        if (rtnl_addr_get_ifindex(object) != index || rtnl_addr_get_family(object) != AF_INET) {
            continue;
        }
        return InterfaceAddress{.address = number_of(rtnl_addr_get_local(object)),
                                .prefix = rtnl_addr_get_prefixlen(object)};
    }
    return std::nullopt;
}

void Links::bring_up(const std::string& interface) const {
    const Link change(rtnl_link_alloc());
    const Link which(rtnl_link_alloc());
    rtnl_link_set_ifindex(which.get(), index_of(interface));
    rtnl_link_set_flags(change.get(), IFF_UP);
    require(rtnl_link_change(socket_.get(), which.get(), change.get(), 0),
            "bring up the interface " + interface);
}

void Links::add_address(const std::string& interface, const InterfaceAddress& address,
                        bool with_route) const {
    const InterfaceAddressObject object(rtnl_addr_alloc());
    const Address local = ipv4(address.address, address.prefix);
    rtnl_addr_set_ifindex(object.get(), index_of(interface));
    require(rtnl_addr_set_local(object.get(), local.get()), "write an address");
    if (!with_route) rtnl_addr_set_flags(object.get(), IFA_F_NOPREFIXROUTE);
    const int result = rtnl_addr_add(socket_.get(), object.get(), NLM_F_CREATE);
    if (result == -NLE_EXIST) return;
    require(result, fmt::format("give {} to the interface {}", spec::address_text(address.address),
                                interface));
}

void Links::make_bridge(const std::string& name,
                        const std::optional<InterfaceAddress>& address) const {
    const Link bridge(rtnl_link_alloc());
    require(rtnl_link_set_type(bridge.get(), "bridge"), "describe a bridge");
    rtnl_link_set_name(bridge.get(), name.c_str());
    if (address) {
        // Without one of its own a bridge takes that of an interface, and changes it when that
        // goes.
        const Address hardware = hardware_address(address->address);
        rtnl_link_set_addr(bridge.get(), hardware.get());
    }
    const int result = rtnl_link_add(socket_.get(), bridge.get(), NLM_F_CREATE | NLM_F_EXCL);
    if (result != -NLE_EXIST) require(result, "make the bridge " + name);
    switch_ipv6_off(name);
    if (address) add_address(name, *address);
    bring_up(name);
}

void Links::remove(const std::string& interface) const {
    const Link link(rtnl_link_alloc());
    rtnl_link_set_name(link.get(), interface.c_str());
    const int result = rtnl_link_delete(socket_.get(), link.get());
    if (result == -NLE_NODEV || result == -NLE_OBJ_NOTFOUND) return;
    require(result, "remove the interface " + interface);
}

void Links::connect(const std::string& bridge, std::uint32_t address, pid_t pid) const {
    const int master = index_of(bridge);
    if (master == 0) {
        throw Error(
            ErrorCode::unavailable,
            "the bridge of the jobs is gone, restart gruca-service to have it again: " + bridge);
    }
    const std::string name = machine_end(address);
    const Link pair(rtnl_link_veth_alloc());
    const Link node_end(rtnl_link_veth_get_peer(pair.get()));
    rtnl_link_set_name(pair.get(), name.c_str());
    rtnl_link_set_master(pair.get(), master);
    rtnl_link_set_name(node_end.get(), kNodeInterface);
    rtnl_link_set_ns_pid(node_end.get(), pid);
    const Address hardware = hardware_address(address);
    rtnl_link_set_addr(node_end.get(), hardware.get());
    const std::string what = "connect a node to the bridge " + bridge;
    int result = rtnl_link_add(socket_.get(), pair.get(), NLM_F_CREATE | NLM_F_EXCL);
    if (result == -NLE_EXIST) {
        // Of the node that had the address before: its namespace is being taken down.
        remove(name);
        result = rtnl_link_add(socket_.get(), pair.get(), NLM_F_CREATE | NLM_F_EXCL);
    }
    require(result, what);
    switch_ipv6_off(name);
    bring_up(name);
}

void Links::set_up_node(const InterfaceAddress& address,
                        std::optional<std::uint32_t> gateway) const {
    bring_up("lo");
    add_address(kNodeInterface, address);
    bring_up(kNodeInterface);
    if (!gateway) return;
    const Route route(rtnl_route_alloc());
    const Address everywhere = ipv4(0, 0);
    const Address by_way_of = ipv4(*gateway, 32);
    rtnl_route_set_family(route.get(), AF_INET);
    rtnl_route_set_dst(route.get(), everywhere.get());
    rtnl_nexthop* const hop = rtnl_route_nh_alloc();  // The route's, once it is added.
    rtnl_route_nh_set_gateway(hop, by_way_of.get());
    rtnl_route_nh_set_ifindex(hop, index_of(kNodeInterface));
    rtnl_route_add_nexthop(route.get(), hop);
    require(rtnl_route_add(socket_.get(), route.get(), NLM_F_CREATE | NLM_F_EXCL),
            "give the node a way to the machine");
}

void Links::set_up_isolated_node(const InterfaceAddress& address,
                                 const std::vector<std::uint32_t>& peers) const {
    bring_up("lo");
    add_address(kNodeInterface, address, false);
    bring_up(kNodeInterface);
    drop_what_has_no_way_back();
    for (const std::uint32_t peer : peers) add_peer(peer);
}

void Links::add_peer(std::uint32_t peer) const {
    const Route route(rtnl_route_alloc());
    const Address to = ipv4(peer, 32);
    rtnl_route_set_family(route.get(), AF_INET);
    rtnl_route_set_scope(route.get(), RT_SCOPE_LINK);
    rtnl_route_set_dst(route.get(), to.get());
    rtnl_nexthop* const hop = rtnl_route_nh_alloc();  // The route's, once it is added.
    rtnl_route_nh_set_ifindex(hop, index_of(kNodeInterface));
    rtnl_route_add_nexthop(route.get(), hop);
    require(rtnl_route_add(socket_.get(), route.get(), NLM_F_CREATE | NLM_F_EXCL),
            "give the node a way to its peer " + spec::address_text(peer));
}

}  // namespace gruca::netlink
