#include "agent/system_calls.h"

#include <sched.h>
#include <seccomp.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include "base/error.h"

namespace gruca::agent {
namespace {

// What needs no capability, or would only need one of a namespace that a program makes for itself:
// the rest fails already.
constexpr std::array kRefused = {
    // Namespaces: whoever is root of new ones may mount control groups without their limits, freeze
    // itself against every kill, and meets kernel code that is for administrators.
    SCMP_SYS(unshare), SCMP_SYS(setns),
    // Mounts.
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(mount_setattr), SCMP_SYS(move_mount),
    SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fspick), SCMP_SYS(fsmount),
    SCMP_SYS(pivot_root),
    // Key rings belong to the user, not to a namespace.
    SCMP_SYS(add_key), SCMP_SYS(keyctl), SCMP_SYS(request_key),
    // Large parts of the kernel that are for those who operate and measure a machine.
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(syslog),
    // Calls that no filter sees.
    SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    // Files by number instead of by path: past every mount.
    SCMP_SYS(open_by_handle_at)};

// clone() makes processes, threads, and namespaces, by bits of its first argument.
constexpr std::array kRefusedOfClone = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                        CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

}  // namespace

void refuse_system_calls() {
    const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(::seccomp_init(SCMP_ACT_ALLOW),
                                                                  ::seccomp_release);
    if (!filter) throw Error(ErrorCode::resource_exhausted, "no memory for a filter");
    int failure = 0;
    const auto require = [&failure](int outcome) { failure = failure == 0 ? outcome : failure; };
#ifdef __x86_64__
    require(::seccomp_arch_add(filter.get(), SCMP_ARCH_X86));  // Its calls have other numbers.
#endif
    for (const int call : kRefused) {
        require(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 0));
    }
    for (const int flag : kRefusedOfClone) {
        const auto bit = static_cast<scmp_datum_t>(flag);
        require(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                   SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit)));
    }
    // Its flags lie in memory, where no filter sees them. Told that the kernel has no such call,
    // every C library takes clone().
    require(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0));
    require(::seccomp_load(filter.get()));
    if (failure != 0) {
        errno = -failure;
        throw_errno("cannot filter the system calls of the program");
    }
}

}  // namespace gruca::agent
