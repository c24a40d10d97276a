#include "net/connection_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace gruca::net {
namespace {

class ConnectionLimit : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0); }
    void TearDown() override { ::setrlimit(RLIMIT_NOFILE, &before); }

    void have(rlim_t soft) const {
        const rlimit limit{.rlim_cur = soft, .rlim_max = before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    static rlim_t soft() {
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        return limit.rlim_cur;
    }

    rlimit before{};
};

TEST_F(ConnectionLimit, is_what_was_wanted_when_the_hard_limit_allows_it) {
    have(300);
    EXPECT_EQ(make_room_for_connections(100), 100u);
    EXPECT_EQ(soft(), before.rlim_max);
}

TEST_F(ConnectionLimit, leaves_descriptors_for_files_when_the_hard_limit_is_small) {
    EXPECT_EQ(make_room_for_connections(1u << 30), before.rlim_max > 2 * kDescriptorsReserved
                                                       ? before.rlim_max - kDescriptorsReserved
                                                       : before.rlim_max / 2);
}

}  // namespace
}  // namespace gruca::net
