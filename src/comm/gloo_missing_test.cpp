#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/comm_contract.h"
#include "comm/gloo_comm.h"

namespace gruca::comm {

std::vector<Implementation> gloo_implementations() {
    return {};
}

namespace {

TEST(GlooMissing, a_build_without_gloo_says_what_to_install) {
    try {
        make_gloo_comm({.rank = 0, .size = 1, .own_host = "", .rendezvous = {}, .secret = ""});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unavailable);
    }
}

}  // namespace
}  // namespace gruca::comm
