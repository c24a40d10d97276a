#include "agent/oom_record.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::agent {
namespace {

constexpr const char* kRecord =
    "6,1093,8801234,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/gruca,task_memcg=/gruca/job-algo-1-abc123,task=python3,worker,pid=4711,uid=0\n";

TEST(OomRecord, the_victim_is_found_by_the_group_it_was_in) {
    EXPECT_EQ(oom_victim_in(kRecord, "job-algo-1-abc123"), "python3,worker");
    EXPECT_EQ(oom_victim_in(kRecord, "algo-1-abc123"), std::nullopt);
    EXPECT_EQ(oom_victim_in(kRecord, "job-algo-1-abc12"), std::nullopt);
    EXPECT_EQ(
        oom_victim_in("6,1,1,-;python3: /job-algo-1-abc123,task=x,pid=1", "job-algo-1-abc123"),
        std::nullopt);
}

TEST(OomRecord, without_a_log_of_the_kernel_nobody_is_named) {
    EXPECT_EQ(oom_victim("job-algo-1-abc123", "/does/not/exist"), std::nullopt);
    const TempDir scratch;
    write_file_atomic(scratch.path() / "kmsg", kRecord);
    EXPECT_EQ(oom_victim("job-algo-1-abc123", scratch.path() / "kmsg"), "python3,worker");
}

}  // namespace
}  // namespace gruca::agent
