// agent/remote_shell.h
//
// What mpirun needs in place of ssh: a program of one node that runs a command on another of the
// same job. The keeper of each node of a job with several starts a server, one more process of the
// node, with no more rights than the program; `gruca-rsh` in the job's PATH is the client.
//
//   gruca-rsh algo-2 'hostname; exit 3'   prints algo-2, ends with 3
//   gruca-rsh algo-1                      waits until algo-1 has ended, ends with 0
//
// The command starts with /bin/sh in the other node's namespaces, with its program's environment,
// stdin empty, in /. Its output and its exit code come back; it is killed when the client goes, and
// with everything else when its node ends. A node that is not up yet is waited for.
//
// Nodes know each other by a secret of the job, which signs a number that the server chooses anew
// for each connection together with the command. What follows crosses the job's network in the
// clear. docs/formats/remote-shell.md has the bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/keeper_order.h"
#include "spec/node.h"

namespace gruca::agent {

constexpr std::uint16_t kRemoteShellPort = 7716;
constexpr const char* kRemoteShellName = "gruca-rsh";
constexpr const char* kRemoteShellDirectory = "gruca/bin";        // Below /opt/ml; in PATH.
constexpr const char* kRemoteShellSecret = "gruca/remote-shell";  // Below /opt/ml.

constexpr std::size_t kCommandBytesMax = 256u << 10;
constexpr std::size_t kSessionsMax = 1024;  // At once on one node.
// Of them, those that have not shown yet that they are of the job: the oldest gives way.
constexpr std::size_t kStrangersMax = 64;
constexpr std::chrono::minutes kPeerPatience{15};

// Of the job, the same on its nodes. It follows from the job's own key, which nothing describes.
std::string remote_shell_secret(const spec::Task& task);

// What a job finds of it in its /opt/ml, here `ml`. `program` is gruca-agent, which is also the
// client when it is called by kRemoteShellName.
void write_remote_shell_files(const spec::Task& task, const std::filesystem::path& program,
                              const std::filesystem::path& ml);

// Runs on in a process of its own. Called by the keeper within the sandbox. What hinders it is a
// line on stderr: the program runs all the same.
void start_remote_shell(const KeeperOrder& order);

// The body of `gruca-rsh`; returns its exit code: the command's, or 255.
int run_remote_shell(const std::vector<std::string>& arguments);

}  // namespace gruca::agent
