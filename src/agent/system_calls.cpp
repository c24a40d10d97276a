#include "agent/system_calls.h"

#include <seccomp.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include "base/error.h"

namespace gruca::agent {
namespace {

// Only what needs no capability: the rest fails already.
constexpr std::array kRefused = {
    // Key rings belong to the user, not to a namespace.
    SCMP_SYS(add_key), SCMP_SYS(keyctl), SCMP_SYS(request_key),
    // Large parts of the kernel that are for those who operate and measure a machine.
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(syslog),
    // Calls that no filter sees.
    SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    // Files by number instead of by path: past every mount.
    SCMP_SYS(open_by_handle_at)};

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
    require(::seccomp_load(filter.get()));
    if (failure != 0) {
        errno = -failure;
        throw_errno("cannot filter the system calls of the program");
    }
}

}  // namespace gruca::agent
