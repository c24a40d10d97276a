// agent/keeper_order.h
//
// What an agent and the keeper of its program tell each other. The order goes down once, as JSON
// in an anonymous file; commands follow as single bytes through a socket, whose end of file says
// that the agent is dead; the ending comes back as a file that outlives both.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "spec/node_directory.h"

namespace gruca::agent {

// A directory or file of this machine that the program sees at `target`, writable.
struct Bind {
    std::string source;
    std::string target;
};

// The network namespace of a node, and how it is connected.
struct KeeperNetwork {
    std::string bridge;   // Of the machine.
    std::string address;  // Of the node.
    int prefix = 32;
    std::string gateway;  // Empty: no way out.
    // Of an isolated node: whom alone it reaches.
    std::optional<std::vector<std::string>> peers = {};

    Json to_json() const;
    static KeeperNetwork from_json(const Json& json);
};

// Where the node's remote shell listens, and what its clients must know.
struct RemoteShellOrder {
    std::string address;
    std::string secret;
};

struct KeeperOrder {
    std::vector<std::string> argv;
    std::vector<std::string> environment;  // "NAME=value", complete.
    std::string hostname;
    std::string hosts_file;                     // Seen as /etc/hosts.
    std::string resolver_file = {};             // Seen as /etc/resolv.conf; empty: the machine's.
    std::optional<KeeperNetwork> network = {};  // Nothing: the machine's.
    std::optional<RemoteShellOrder> remote_shell = {};
    std::vector<Bind> binds;                // In order; a later one may lie in an earlier one.
    std::vector<std::string> hidden_paths;  // Those that do not exist are skipped.

    Json to_json() const;
    static KeeperOrder from_json(const Json& json);
};

// How it ended. `failure` is set when the program never ran.
struct Ending {
    ExitStatus status = {};
    TimePoint at = {};
    std::string failure = {};
    bool order_is_wrong = false;  // The failure is the order's, not the machine's.
    // Something that was killed hangs in the kernel. It runs no instruction of its own any more.
    bool stuck = false;

    Json to_json() const;
    static Ending from_json(const Json& json);
};

// Descriptors that the keeper is started with.
constexpr int kOrderFd = 3;
constexpr int kCommandFd = 4;
constexpr int kLogFd = 5;   // Opened for appending.
constexpr int kWorkFd = 6;  // The directory in which kEndingFile is written.
constexpr const char* kEndingFile = spec::node_directory::kEnding;

// Commands.
constexpr char kGo = 'G';         // Accounting is set up: start the program.
constexpr char kTerminate = 'T';  // SIGTERM to the program.
constexpr char kKill = 'K';       // SIGKILL to everything.

}  // namespace gruca::agent
