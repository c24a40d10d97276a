// cluster/network_probe.h
//
// Tries, for real and without leaving a trace, what the network of jobs needs of this machine:
// a bridge, a pair of interfaces and the rules of the way out, in a network namespace that is made
// for it. `gruca doctor` asks for it through `gruca-service --probe`, because only this room knows
// how that network is made.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"

namespace gruca::cluster {

// {"network": {"bridge": "gruca-1a2b3c", "subnet": "198.18.64.0/18", "gateway": "198.18.64.1",
//  "why": "", "way_out": "", "firewall": []}}
//
// `why`: what keeps nodes from a namespace of their own, empty when nothing does; otherwise there
// is no subnet. `way_out`: why they do not reach beyond this machine. `firewall`: what others'
// rules would drop. Leaves the calling thread in a namespace without a network.
Json probe_network(const std::string& setting, int slots, const std::filesystem::path& data_dir);

}  // namespace gruca::cluster
