// agent/job_network.h
//
// How a node is connected. Where the service has made a network for jobs (cluster/job_network.h),
// each node is a network namespace with lo and eth0, and reaches its peers, the service and what
// the machine reaches; an isolated job's nodes reach their peers and nothing else. Otherwise nodes
// are told apart by loopback addresses in the machine's network.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/keeper_order.h"
#include "spec/node.h"

namespace gruca::agent {

constexpr const char* kResolverFile = "/etc/resolv.conf";

// The interface over which the nodes of this job reach each other.
const char* interface_of(const spec::Task& task);

// Nothing: the machine's network. Throws failed_precondition when the job is to be isolated and
// cannot be, or its address is of a network that the service does not have any more.
std::optional<KeeperNetwork> network_of(const spec::Task& task,
                                        const std::optional<spec::NodeNetwork>& network);

// The name servers for a job that has a loopback of its own: those of `machine` that lie elsewhere,
// or else those that a resolver on the machine's loopback asks (`upstream`).
std::string resolver_text(const std::string& machine, const std::string& upstream);
// Of this machine.
std::string resolver_text();

// By the agent, in the machine's network: the pair of interfaces of the keeper `pid`.
void connect_node(const KeeperNetwork& network, pid_t pid);
// By the keeper, after that: brings them up on the node's side.
void enter_network(const KeeperNetwork& network);

}  // namespace gruca::agent
