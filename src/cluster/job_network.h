// cluster/job_network.h
//
// The network that jobs have for themselves on this machine: a bridge, named after the data
// directory, in a subnet that nothing else here uses, with the machine at its first address; and a
// second bridge without any address, for jobs that are to reach nobody but their peers. Each node
// is a network namespace with one interface on one of them (agent/job_network.h).
//
// What is possible is looked at (look_at_network), decided purely (plan_network) and then done
// (JobNetwork). A machine that allows none of it runs jobs in its own network, as an ordinary
// user's service does; the plan says why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spec/node.h"
#include "spec/subnet.h"

namespace gruca::cluster {

// What plan_network has to know of the machine. The answers are the kernel's.
struct NetworkFacts {
    bool is_root = false;
    bool may_administer = false;           // CAP_NET_ADMIN, and CAP_SYS_ADMIN for namespaces.
    std::optional<spec::Subnet> own = {};  // What the bridge of an earlier start has.
    std::vector<spec::Subnet> used = {};   // Destinations of routes, the bridge's left out.
};

struct NetworkPlan {
    std::optional<spec::Subnet> subnet = {};  // Nothing: jobs share the machine's network.
    std::string why = {};                     // Then: why, and what to do, for people.
};

constexpr const char* kNetworkAuto = "auto";
constexpr const char* kNetworkNone = "none";

// "gruca-" and six digits that follow from the data directory.
std::string bridge_name(const std::filesystem::path& data_dir);

NetworkFacts look_at_network(const std::string& bridge);

// `setting` is kNetworkAuto, kNetworkNone or a subnet with room for `slots` nodes. `bridge` chooses
// among free subnets, so that two services that start at once choose different ones. Throws
// invalid_argument when a subnet is asked for and cannot be had.
NetworkPlan plan_network(const std::string& setting, int slots, const std::string& bridge,
                         const NetworkFacts& facts);

// Thread-compatible.
class JobNetwork {
  public:
    JobNetwork(std::string bridge, const spec::Subnet& subnet);

    // Makes what is missing of it. Throws when that is not possible.
    void make() const;
    void remove() const;
    // Whether nodes reach beyond the machine; tells the log what hinders them.
    bool open_way_out() const;

    spec::NodeNetwork facts() const;  // Without the endpoint.
    const std::string& bridge() const { return bridge_; }

  private:
    std::uint32_t gateway() const { return subnet_.base + 1; }
    std::string isolated_bridge() const { return bridge_ + "-i"; }

    const std::string bridge_;
    const spec::Subnet subnet_;
};

// All three steps. Nothing when jobs share the machine's network; the log says why.
std::unique_ptr<JobNetwork> open_job_network(const std::string& setting, int slots,
                                             const std::filesystem::path& data_dir);

}  // namespace gruca::cluster
