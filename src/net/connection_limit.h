// net/connection_limit.h
//
// How many connections a process may have: every one is a descriptor, and so are files.
#pragma once

#include <cstddef>

namespace gruca::net {

// Raises the process's limit of open descriptors as far as it may, and returns how many connections
// fit beside kDescriptorsReserved others: `wanted`, or fewer with a warning that says what to
// change. Programs started later have the raised limit too. Thread-safe.
std::size_t make_room_for_connections(std::size_t wanted);

constexpr std::size_t kDescriptorsReserved = 1024;

}  // namespace gruca::net
