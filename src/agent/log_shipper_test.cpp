#include "agent/log_shipper.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/fake_service.h"
#include "base/queue.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

class LogShipperTest : public testing::Test {
  protected:
    void append(const std::string& text) const {
        write_all(open_file(log, O_WRONLY | O_APPEND | O_CREAT).get(), bytes_of(text));
    }
    void finish(LogShipper& shipper) {
        shipper.finish([this] { complete.push(true); });
        ASSERT_TRUE(complete.pop_for(std::chrono::seconds(30)));
    }

    const TempDir scratch;
    const std::filesystem::path log = scratch.path() / "log";
    FakeService service;
    Queue<bool> complete{1};
};

TEST_F(LogShipperTest, bytes_arrive_while_the_file_grows_and_finish_waits_for_the_last) {
    LogShipper shipper(log, service);
    append("first\n");
    service.wait_for_log("first\n");
    append(std::string("binary \0\xff\n", 10));
    finish(shipper);
    EXPECT_EQ(service.log(), std::string("first\nbinary \0\xff\n", 16));
}

TEST_F(LogShipperTest, an_empty_log_is_complete) {
    LogShipper shipper(log, service);
    finish(shipper);
    EXPECT_EQ(service.log(), "");
}

TEST_F(LogShipperTest, a_log_larger_than_a_piece_is_shipped_whole) {
    std::string text;
    while (text.size() < 3 * kLogPieceBytes) text += std::to_string(text.size()) + "\n";
    append(text);
    LogShipper shipper(log, service);
    finish(shipper);
    EXPECT_TRUE(service.log() == text);
}

TEST_F(LogShipperTest, a_new_shipper_goes_on_where_the_service_is) {
    append("one\ntwo\n");
    service.append_log(0, "one\n");
    LogShipper shipper(log, service);
    finish(shipper);
    EXPECT_EQ(service.log(), "one\ntwo\n");
}

TEST_F(LogShipperTest, a_service_that_is_away_is_waited_for) {
    LogShipper shipper(log, service);
    append("before\n");
    service.wait_for_log("before\n");
    service.set_away(true);
    append("meanwhile\n");
    shipper.finish([this] { complete.push(true); });
    EXPECT_FALSE(complete.pop_for(std::chrono::milliseconds(30)));
    service.set_away(false);
    EXPECT_TRUE(complete.pop_for(std::chrono::seconds(30)));
    EXPECT_EQ(service.log(), "before\nmeanwhile\n");
}

TEST_F(LogShipperTest, a_service_that_lost_the_end_of_a_log_gets_it_again) {
    LogShipper shipper(log, service);
    append("one\ntwo\n");
    service.wait_for_log("two\n");
    service.lose_log(4);
    append("three\n");
    finish(shipper);
    EXPECT_EQ(service.log(), "one\ntwo\nthree\n");
}

TEST_F(LogShipperTest, a_service_that_is_too_busy_every_other_time_gets_every_byte_once) {
    std::string text;
    while (text.size() < 3 * kLogPieceBytes) text += std::to_string(text.size()) + "\n";
    append(text);
    service.refuse_appends(4);
    LogShipper shipper(log, service);
    finish(shipper);
    EXPECT_TRUE(service.log() == text);
    EXPECT_EQ(service.appends_refused(), 4);
}

}  // namespace
}  // namespace gruca::agent
