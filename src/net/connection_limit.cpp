#include "net/connection_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace gruca::net {

std::size_t make_room_for_connections(std::size_t wanted) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throw_errno("cannot read the descriptor limit");
    if (limit.rlim_cur < limit.rlim_max) {
        const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
    }
    const std::size_t half = limit.rlim_cur / 2;  // Of a limit too small for the reserve.
    const std::size_t room =
        limit.rlim_cur > 2 * kDescriptorsReserved ? limit.rlim_cur - kDescriptorsReserved : half;
    if (room >= wanted) return wanted;
    log_warning(
        "at most {} connections, not {}: this process may open only {} descriptors; raise the hard "
        "limit (ulimit -Hn, LimitNOFILE=) to {} before the start",
        room, wanted, limit.rlim_cur, wanted + kDescriptorsReserved);
    return std::max<std::size_t>(1, room);
}

}  // namespace gruca::net
