// The promises of agent/log_space.h.

#include "agent/log_space.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <thread>

#include "agent/fake_service.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

constexpr std::uint64_t kBlock = 4096;

class LogSpaceTest : public testing::Test {
  protected:
    void write(std::uint64_t bytes) const {
        write_all(open_file(log, O_WRONLY | O_CREAT | O_APPEND).get(),
                  bytes_of(std::string(bytes, 'x')));
    }
    std::uint64_t first_held() const {
        const UniqueFd fd = open_file(log, O_RDONLY);
        return static_cast<std::uint64_t>(::lseek(fd.get(), 0, SEEK_DATA));
    }
    void wait_until_held_from(std::uint64_t offset) const {
        while (first_held() != offset) std::this_thread::yield();  // The test's timeout ends it.
    }

    const TempDir scratch;
    const std::filesystem::path log = scratch.path() / "log";
    const LogSpaceOptions small{.step_bytes = 4 * kBlock, .kept_bytes = kBlock};
    FakeService service;
};

TEST_F(LogSpaceTest, what_the_service_has_on_disk_is_freed_but_for_the_end) {
    write(10 * kBlock);
    service.append_log(0, std::string(10 * kBlock, 'x'));
    LogSpace space(log, service, small);
    space.note_stored(10 * kBlock);
    wait_until_held_from(9 * kBlock);
    EXPECT_EQ(std::filesystem::file_size(log), 10 * kBlock);
}

TEST_F(LogSpaceTest, what_is_stored_but_not_on_disk_stays) {
    write(20 * kBlock);
    service.append_log(0, std::string(6 * kBlock + 7, 'x'));  // Of these the service is sure.
    LogSpace space(log, service, small);
    space.note_stored(20 * kBlock);
    wait_until_held_from(5 * kBlock);
}

TEST_F(LogSpaceTest, a_service_that_is_away_is_asked_again) {
    write(10 * kBlock);
    service.append_log(0, std::string(10 * kBlock, 'x'));
    service.set_away(true);
    LogSpace space(log, service, small);
    space.note_stored(10 * kBlock);
    service.set_away(false);
    wait_until_held_from(9 * kBlock);
}

}  // namespace
}  // namespace gruca::agent
