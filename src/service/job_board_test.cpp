// What service/job_board.h keeps of jobs that are over, and what it reads again.

#include "service/job_board.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temp_dir.h"

namespace gruca::service {
namespace {

control::Job job(const std::string& name, const std::string& status) {
    control::Job made;
    made.spec.name = name;
    made.spec.arn = "arn:x/" + name;
    made.spec.instance_count = 1;
    made.number = 1;
    made.status = status;
    made.secondary = status;
    made.nodes.push_back({.id = name + "-algo-1", .host = "algo-1", .address = "127.64.0.1"});
    made.nodes.back().gone = status != "InProgress";
    return made;
}

class JobBoardTest : public ::testing::Test {
  protected:
    void write(const control::Job& what) {
        database.commit({.jobs = {{.summary = summary_of(what), .json = what.to_json().dump()}}});
    }

    const TempDir scratch;
    Database database{{.path = scratch.path() / "state.db"}};
    JobBoard board{database};
};

TEST_F(JobBoardTest, a_job_in_progress_is_not_read_from_the_database) {
    board.publish(job("a", "InProgress"));
    EXPECT_EQ(board.find("a")->status, "InProgress");
    EXPECT_EQ(board.find_node("a-algo-1")->node().host, "algo-1");
    EXPECT_NE(board.find_listed("a")->live, nullptr);
    EXPECT_EQ(board.find("b"), nullptr);
}

TEST_F(JobBoardTest, a_job_that_was_over_before_the_start_is_read_when_it_is_asked_for) {
    write(job("a", "Completed"));
    board.publish_over({summary_of(job("a", "Completed"))});
    EXPECT_EQ(board.find_listed("a")->live, nullptr);
    EXPECT_EQ(board.find("a")->status, "Completed");
    EXPECT_EQ(board.find_by_arn("arn:x/a"), board.find("a"));
    EXPECT_FALSE(board.find_node("a-algo-1"));
}

TEST_F(JobBoardTest, a_job_that_ends_leaves_its_nodes_and_shows_its_end) {
    board.publish(job("a", "InProgress"));
    write(job("a", "Stopped"));
    board.publish(job("a", "Stopped"));
    EXPECT_EQ(board.find("a")->status, "Stopped");
    EXPECT_FALSE(board.find_node("a-algo-1"));
    EXPECT_EQ(board.find_listed("a")->live, nullptr);
}

TEST_F(JobBoardTest, a_change_to_a_job_that_is_over_shows_at_once) {
    control::Job over = job("a", "Completed");
    write(over);
    board.publish_over({summary_of(over)});
    EXPECT_TRUE(board.find("a")->tags.empty());
    over.tags = {{"k", "v"}};
    write(over);
    board.publish(over);
    EXPECT_EQ(board.find("a")->tags.size(), 1u);
}

TEST_F(JobBoardTest, more_jobs_than_are_kept_are_all_found) {
    const int count = static_cast<int>(kRecalledMax) + 10;
    for (int i = 0; i < count; ++i) {
        control::Job over = job(std::to_string(i), "Completed");
        over.number = i;
        write(over);
        board.publish(over);
    }
    for (int i = 0; i < count; ++i) EXPECT_EQ(board.find(std::to_string(i))->number, i);
}

TEST_F(JobBoardTest, a_row_that_is_lost_is_said_to_be) {
    board.publish_over({summary_of(job("a", "Completed"))});
    EXPECT_THROW(board.find("a"), Error);
}

}  // namespace
}  // namespace gruca::service
