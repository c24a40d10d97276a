// agent/probe.h
//
// Tries, for real and without leaving a trace, what an agent needs of its machine. `gruca doctor`
// asks for it through `gruca-agent --probe`, because only this room knows how a job is isolated.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace gruca::agent {

// {"sandbox": {"why": ""}, "cgroups": {"groups": ["/sys/fs/cgroup/memory/gruca/probe-1"]},
// "resolver": {"servers": ["10.0.0.2"]}}; `why` says what does not work, empty when it works; the
// servers are those of a job with a network of its own. `program` is gruca-agent.
// What a probe that was killed has left in `groups`, the group of all nodes' groups.
void remove_stale_probes(const std::filesystem::path& groups);

Json probe_machine(const std::filesystem::path& program);

}  // namespace gruca::agent
