// spec/node_directory.h
//
// The names of the files in a node's directory that more than one program reads or writes; the
// page docs/formats/node-directory.md says what is in them.
#pragma once

#include <chrono>

namespace gruca::spec::node_directory {

// Written by whoever starts the node.
constexpr const char* kConfig = "config.json";
constexpr const char* kAgentPid = "agent.pid";
constexpr const char* kAgentLock = "agent.lock";
constexpr const char* kAgentLog = "agent.log";
constexpr const char* kWork = "work";

// Below kWork, written by the agent.
constexpr const char* kLog = "log";
constexpr const char* kKeeperPid = "keeper.pid";
constexpr const char* kCgroups = "cgroups";

// Below kWork, written by the keeper.
constexpr const char* kEnding = "ending.json";
// A keeper whose program was killed has written its ending by then, whatever hangs below it.
constexpr std::chrono::seconds kEndingWithin{120};

// The end of a log whose keeper was killed. What was in its pipe then, up to 1 MiB, is lost.
constexpr const char* kCutMark =
    "\ngruca: the process that keeps the training program was killed; the last lines of the "
    "program may be missing\n";

}  // namespace gruca::spec::node_directory
