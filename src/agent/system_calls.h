// agent/system_calls.h
//
// What no training program needs and what has led out of containers more than once: namespaces and
// mounts of its own, the kernel's key rings, BPF, performance counters, user-space page faults,
// io_uring, handles of files. Docker refuses all of it too.
#pragma once

namespace gruca::agent {

// From here on such calls of this process and all it starts fail with EPERM, as on a machine that
// forbids them, and clone3 with ENOSYS: programs then take clone. Needs no_new_privs. Throws when
// the kernel takes no filter.
void refuse_system_calls();

}  // namespace gruca::agent
