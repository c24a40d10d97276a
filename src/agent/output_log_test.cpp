// The promises of agent/output_log.h.

#include "agent/output_log.h"

#include <fcntl.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::agent {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

class OutputLogTest : public testing::Test {
  protected:
    void free_up_to(std::uint64_t offset) const {
        ASSERT_EQ(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                              static_cast<off_t>(offset)),
                  0);
    }

    const TempDir scratch;
    const std::filesystem::path file = scratch.path() / "log";
    const UniqueFd fd = open_file(file, O_RDWR | O_CREAT | O_APPEND);
    const std::string piece = std::string(kMiB, 'x');
};

TEST_F(OutputLogTest, a_program_waits_when_too_much_is_held_and_goes_on_when_some_is_freed) {
    OutputLog log(fd.get(), 3 * kMiB);
    for (int i = 0; i < 3; ++i) {
        log.append(piece);
        EXPECT_FALSE(log.is_full()) << i;
    }
    log.append(piece);
    EXPECT_TRUE(log.is_full());
    EXPECT_TRUE(log.is_full());
    free_up_to(2 * kMiB);
    EXPECT_FALSE(log.is_full());
    log.append(std::string("after\n"));
    EXPECT_TRUE(read_file(file).ends_with("xafter\n"));  // Looking has not moved the end.
}

TEST_F(OutputLogTest, a_log_that_is_freed_as_it_grows_never_fills) {
    OutputLog log(fd.get(), 3 * kMiB);
    for (std::uint64_t size = kMiB; size < 64 * kMiB; size += kMiB) {
        log.append(piece);
        EXPECT_FALSE(log.is_full()) << size;
        free_up_to(size);
    }
}

}  // namespace
}  // namespace gruca::agent
