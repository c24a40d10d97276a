// spec/node_directory.h
//
// The names of the files in a node's directory that more than one program reads or writes; the
// page docs/formats/node-directory.md says what is in them.
#pragma once

namespace gruca::spec::node_directory {

// Written by whoever starts the node.
constexpr const char* kConfig = "config.json";
constexpr const char* kAgentPid = "agent.pid";
constexpr const char* kAgentLog = "agent.log";
constexpr const char* kWork = "work";

// Below kWork, written by the agent.
constexpr const char* kLog = "log";
constexpr const char* kKeeperPid = "keeper.pid";
constexpr const char* kCgroups = "cgroups";

}  // namespace gruca::spec::node_directory
