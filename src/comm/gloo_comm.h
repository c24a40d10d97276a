// comm/gloo_comm.h
//
// Ranks as processes, on one machine or several, over TCP. Bytes travel by Gloo; the collectives
// are ours, written on its point-to-point operations, because they must add in rank order and must
// be freed by an abort.
//
//   std::optional<RendezvousServer> server;            // on rank 0 only, and outlives the Comm
//   const auto comm = make_gloo_comm({.rank = 1, .size = 2, .own_host = "algo-2",
//                                     .rendezvous = {"algo-1", 7777}, .secret = job_name});
//
// A sum is a reduce-scatter and an all-gather, both direct: rank r receives its share of everyone's
// numbers, adds them in rank order, and sends the result to all. As many bytes as a ring, and two
// hops instead of 2 (size - 1).
//
// Ignores SIGPIPE in this process: Gloo writes to sockets whose peer may be gone.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/comm.h"
#include "comm/socket.h"

namespace gruca::comm {

struct GlooOptions {
    int rank;
    int size;
    std::string own_host;  // This rank's sockets are bound to it: a name or an IPv4 address.
    Endpoint rendezvous;   // Of the RendezvousServer that rank 0 runs.
    std::string secret;    // The same on all ranks of a job, and different for every job.
    // How long a living but silent peer is waited for in a collective. Longer than what one rank
    // may do alone, such as writing a checkpoint.
    std::chrono::milliseconds timeout = std::chrono::minutes(10);
    // How long the other ranks may take to appear.
    std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
};

// Returns when all ranks are connected. Throws unavailable in a build without Gloo.
std::unique_ptr<Comm> make_gloo_comm(const GlooOptions& options);

}  // namespace gruca::comm
