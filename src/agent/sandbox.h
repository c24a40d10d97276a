// agent/sandbox.h
//
// The view of the machine that a training program gets. Called by the keeper in fresh mount, UTS,
// IPC and pid namespaces (and, when not root, a user namespace), before anything of the job runs:
//
//   * the machine's files, read-only and without device nodes, except
//   * the order's binds (the job's /tmp and /opt/ml first of all), writable; a missing mount point
//     is made without a trace on the machine: its parent becomes a private directory with the same
//     entries;
//   * /etc/hosts, the job's own, and with a network of its own /etc/resolv.conf and /sys too;
//     /proc of the pid namespace, with Docker's read-only and masked
//     places; /dev with the harmless devices and NVIDIA's; /dev/shm, /run: private and empty;
//   * no hidden path, also when the machine replaces or makes it later; see agent/mounts.h.
#pragma once

#include "agent/keeper_order.h"

namespace gruca::agent {

// Throws what is missing, in words for the machine's operator.
void enter_sandbox(const KeeperOrder& order);

// Keeps Docker's default capabilities but CAP_NET_RAW and gives up all others for good;
// no_new_privs; no core files unless the program asks for them; agent/system_calls.h. The last
// thing before the program starts.
void drop_privileges();

}  // namespace gruca::agent
