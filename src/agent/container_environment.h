// agent/container_environment.h
//
// The environment of a training program: what SageMaker sets, what its training images derive from
// the container's files for their scripts (SM_…, so that a script runs here without such an
// image), and what lets mpirun work between nodes. docs/formats/container-contract.md lists it.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "spec/node.h"

namespace gruca::agent {

// Complete, "NAME=value", sorted. `endpoint` is where the job reaches the service.
std::vector<std::string> container_environment(const spec::Task& task, const std::string& endpoint);

}  // namespace gruca::agent
