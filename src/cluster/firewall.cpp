#include "cluster/firewall.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nftables/libnftables.h>

#include <memory>
#include <optional>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::cluster {
namespace {

constexpr const char* kForwardSwitch = "/proc/sys/net/ipv4/ip_forward";

// Added before it is deleted, so that deleting one that is not there is no error.
constexpr const char* kNoTable = "add table inet {0}\ndelete table inet {0}\n";

// Where br_netfilter is on, frames from node to node pass these hooks too: they are let be.
constexpr const char* kTable = R"(table inet {0} {{
    chain leave {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {1} ip daddr != {1} oifname != "{0}" masquerade
    }}
    chain enter {{
        type filter hook forward priority filter; policy accept;
        oifname "{0}" iifname != "{0}" ct state != {{ established, related }} drop
    }}
}}
)";

struct NftOutcome {
    bool ok;
    std::string output, error;
};

NftOutcome run_nft(const std::string& commands) {
    const std::unique_ptr<nft_ctx, void (*)(nft_ctx*)> nft(nft_ctx_new(NFT_CTX_DEFAULT),
                                                           nft_ctx_free);
    if (!nft) return {.ok = false, .output = "", .error = "no context"};
    nft_ctx_buffer_output(nft.get());
    nft_ctx_buffer_error(nft.get());
    const bool ok = nft_run_cmd_from_buffer(nft.get(), commands.c_str()) == 0;
    return {.ok = ok,
            .output = nft_ctx_get_output_buffer(nft.get()),
            .error = nft_ctx_get_error_buffer(nft.get())};
}

bool drops(const char* chain) {
    const NftOutcome listed = run_nft(fmt::format("list chain ip filter {}\n", chain));
    return listed.ok && listed.output.find("policy drop") != std::string::npos;
}

}  // namespace

void open_way_out(const std::string& bridge, const spec::Subnet& subnet) {
    const NftOutcome made = run_nft(fmt::format(fmt::runtime(kNoTable), bridge) +
                                    fmt::format(fmt::runtime(kTable), bridge, subnet.text()));
    if (!made.ok) {
        const std::string first_line = split(made.error, '\n').front();
        throw Error(ErrorCode::unavailable, "the kernel takes no nftables rules: " + first_line);
    }
    if (trim(read_file(kForwardSwitch)) == "1") return;
    const std::optional<Error> failure =
        run_guarded([] { write_all(open_file(kForwardSwitch, O_WRONLY).get(), bytes_of("1")); });
    if (failure) {
        throw Error(ErrorCode::unavailable,
                    "this machine does not forward, and does not let gruca "
                    "change that (sysctl net.ipv4.ip_forward=1): " +
                        failure->message());
    }
}

bool has_way_out(const std::string& bridge) {
    return run_nft(fmt::format("list table inet {}\n", bridge)).ok;
}

void close_way_out(const std::string& bridge) {
    run_nft(fmt::format(fmt::runtime(kNoTable), bridge));
}

std::vector<std::string> firewall_obstacles(const std::string& bridge) {
    std::vector<std::string> found;
    if (drops("FORWARD")) {
        found.push_back(fmt::format(
            "a firewall of this machine (Docker's?) drops what is forwarded, so jobs may reach "
            "nothing outside, nor, with br_netfilter, each other; allow it: iptables -I FORWARD "
            "-i {0} -j ACCEPT; iptables -I FORWARD -o {0} -j ACCEPT",
            bridge));
    }
    if (drops("INPUT")) {
        found.push_back(
            fmt::format("a firewall of this machine drops what comes in, so jobs may "
                        "not reach this service; allow it: iptables -I INPUT -i {} -p "
                        "tcp -j ACCEPT",
                        bridge));
    }
    return found;
}

}  // namespace gruca::cluster
