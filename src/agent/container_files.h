// agent/container_files.h
//
// What the container contract of SageMaker promises a training program to find: the tree of
// /opt/ml, its configuration files and the host names; agent/container_environment.h has the
// variables. Written here, before the
// program starts, into the directory that becomes its /opt/ml; docs/guide/training-container.md
// is the page for users, docs/formats/container-contract.md has every member.
//
// Pure functions of the task, but for the files written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "spec/node.h"

namespace gruca::agent {

constexpr const char* kMl = "/opt/ml";
// Where a job with a CheckpointConfig finds its prefix of the store.
constexpr const char* kCheckpointMount = "/opt/ml/gruca/checkpoints";
constexpr const char* kHome = "/opt/ml/gruca/home";

// As the contract wants them: sorted as text, so algo-10 comes before algo-2.
std::vector<std::string> sorted_hosts(const spec::Task& task);

// Makes the directories and input/config/*.json below `ml`.
void write_container_files(const spec::Task& task, const std::filesystem::path& ml);

// The complete /etc/hosts of the job.
std::string hosts_file(const spec::Task& task);

// What to run. `binaries` is the directory of gruca's own programs. Throws invalid_argument for an
// image that gruca does not have.
std::vector<std::string> container_command(const spec::Task& task,
                                           const std::filesystem::path& binaries);

// The image whose trainer writes checkpoints into the store by itself.
bool writes_own_checkpoints(const spec::Task& task);

}  // namespace gruca::agent
