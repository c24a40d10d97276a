// cluster/firewall.h
//
// The rules that let nodes reach beyond the machine: what leaves a bridge of jobs goes out under
// the machine's address, and nobody outside opens a connection into it. One nftables table, named
// after the bridge; other people's tables are only read.
#pragma once

#include <string>
#include <vector>

#include "spec/subnet.h"

namespace gruca::cluster {

// Replaces the bridge's table and lets the machine forward. Throws unavailable, saying what this
// machine lacks.
void open_way_out(const std::string& bridge, const spec::Subnet& subnet);

bool has_way_out(const std::string& bridge);

// Removes the table; a missing one is fine.
void close_way_out(const std::string& bridge);

// What another firewall of this machine would still drop, with what to do, for the log.
std::vector<std::string> firewall_obstacles(const std::string& bridge);

}  // namespace gruca::cluster
