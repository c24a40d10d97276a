#include "base/private_memory.h"

#include <sys/prctl.h>
#include <sys/resource.h>

namespace gruca {

void keep_memory_private() {
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    rlimit cores = {};
    ::getrlimit(RLIMIT_CORE, &cores);
    cores.rlim_cur = 0;
    ::setrlimit(RLIMIT_CORE, &cores);
}

}  // namespace gruca
