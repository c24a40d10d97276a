// Stands in for gloo_comm.cpp in a build without Gloo.

#include "base/error.h"
#include "comm/gloo_comm.h"

namespace gruca::comm {

std::unique_ptr<Comm> make_gloo_comm(const GlooOptions&) {
    throw Error(ErrorCode::unavailable,
                "this build cannot train across processes: it was made without Gloo; install "
                "libgloo-dev and configure again");
}

}  // namespace gruca::comm
