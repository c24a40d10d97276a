// agent/disk_usage.h
//
// Whether the disk of a node is full, and of what.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.h"

namespace gruca::agent {

// A disk with less room than that counts as full.
constexpr std::uint64_t kDiskFullBytes = 8u << 20;

// A file of so many bytes is made before the program starts and removed when it has ended, so that
// on a full disk there is room for how it ended, the last lines of its log, and the service's
// state.
constexpr std::uint64_t kReserveBytes = 4u << 20;
constexpr const char* kReserve = "reserve";  // In the work directory.

// So long it is looked for the largest files. The agent obeys no order meanwhile.
constexpr std::chrono::seconds kLookMax{3};

// "the disk of /var/lib/gruca is full (1.2 MiB free of 64.0 MiB); the largest of this job:
// /opt/ml/model/big 48.0 MiB, /tmp/x 3.0 MiB". Empty when it is not full. When kLookMax is over
// before all has been looked at, it says so: "; the largest of this job that were found in time: ".
std::string disk_full_text(const std::filesystem::path& work, const Clock& clock);

}  // namespace gruca::agent
