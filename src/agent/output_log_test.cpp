// The promises of agent/output_log.h.

#include "agent/output_log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

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

// A full disk: no file of this process may become larger.
void limit_files_to(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
}

std::string note_of(int lost) {
    return "\ngruca: " + std::to_string(lost) +
           " bytes of output are missing here: the log could not be written\n";
}

TEST_F(OutputLogTest, what_is_lost_is_counted_to_the_byte_and_said_once) {
    OutputLog log(fd.get());
    const auto append = [&](const std::string& text) { log.append(text); };
    limit_files_to(10);
    append("12345678");
    append("abcdef");  // Two of six are taken,
    append("x");       // and there is no room for a note.
    limit_files_to(20);
    append("y");  // The note is begun.
    append("z");
    limit_files_to(RLIM_INFINITY);
    append("after\n");
    log.finish();
    EXPECT_EQ(read_file(file), "12345678ab" + note_of(5) + note_of(2) + "after\n");
}

TEST_F(OutputLogTest, what_is_lost_at_the_end_is_said_when_it_ends) {
    OutputLog log(fd.get());
    limit_files_to(4);
    log.append(std::string("123456"));
    limit_files_to(RLIM_INFINITY);
    log.finish();
    EXPECT_EQ(read_file(file), "1234" + note_of(2));
}

}  // namespace
}  // namespace gruca::agent
