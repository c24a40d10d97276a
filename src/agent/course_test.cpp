#include "agent/course.h"

#include <gtest/gtest.h>

namespace gruca::agent {
namespace {

using spec::NodePhase;
using spec::StopOrder;

const Instant kNow{std::chrono::hours(1)};

class CourseTest : public testing::Test {
  protected:
    CourseTest() {
        order.task = spec::Task();
        order.stop_grace = std::chrono::seconds(120);
    }
    Step next(Instant now = kNow) const { return next_step(course, order, now); }
    void run() {
        course.phase = NodePhase::training;
        course.running = true;
    }

    Course course;
    spec::NodeOrder order;
};

TEST_F(CourseTest, without_a_task_a_node_waits_until_it_is_released) {
    order.task.reset();
    EXPECT_EQ(next(), Step::wait);
    order.release = true;
    EXPECT_EQ(next(), Step::leave);
}

TEST_F(CourseTest, a_job_goes_from_download_to_the_report_of_its_end) {
    EXPECT_EQ(next(), Step::download);
    course.phase = NodePhase::downloading;
    course.working = true;
    EXPECT_EQ(next(), Step::wait);
    course.working = false;
    EXPECT_EQ(next(), Step::start_program);
    run();
    EXPECT_EQ(next(), Step::wait);
    course.running = false;
    course.phase = NodePhase::uploading;
    EXPECT_EQ(next(), Step::settle);
    course.settled = true;
    EXPECT_EQ(next(), Step::close_log);
    course.closing_log = true;
    EXPECT_EQ(next(), Step::wait);
    course.log_complete = true;
    EXPECT_EQ(next(), Step::tell_end);
    course.told = true;
    course.phase = NodePhase::uploaded;
    EXPECT_EQ(next(), Step::wait);
    order.assemble = true;
    EXPECT_EQ(next(), Step::assemble);
    course.phase = NodePhase::assembled;
    EXPECT_EQ(next(), Step::wait);
    order.release = true;
    EXPECT_EQ(next(), Step::leave);
}

TEST_F(CourseTest, the_end_is_never_told_before_the_log_is_complete) {
    course.phase = NodePhase::uploading;
    course.settled = true;
    course.closing_log = true;
    EXPECT_EQ(next(), Step::wait);
    course.phase = NodePhase::downloading;
    course.given_up = true;
    EXPECT_EQ(next(), Step::wait);
    course.closing_log = false;
    EXPECT_EQ(next(), Step::close_log);
}

TEST_F(CourseTest, a_stop_asks_first_and_kills_after_the_grace) {
    run();
    order.stop = StopOrder::stop;
    EXPECT_EQ(next(), Step::terminate);
    course.terminated = kNow;
    EXPECT_EQ(next(kNow + std::chrono::seconds(119)), Step::wait);
    EXPECT_EQ(next_deadline(course, order), kNow + std::chrono::seconds(120));
    EXPECT_EQ(next(kNow + std::chrono::seconds(120)), Step::kill);
    course.killed = kNow;
    EXPECT_EQ(next(kNow + kKeeperGrace / 2), Step::wait);
    EXPECT_EQ(next(kNow + kKeeperGrace), Step::destroy);
    course.destroyed = kNow;
    EXPECT_EQ(next(kNow + kDestroyGrace / 2), Step::wait);
    EXPECT_EQ(next_deadline(course, order), kNow + kDestroyGrace);
    EXPECT_EQ(next(kNow + kDestroyGrace), Step::abandon);
}

TEST_F(CourseTest, kill_and_release_do_not_ask) {
    run();
    order.stop = StopOrder::kill;
    EXPECT_EQ(next(), Step::kill);
    order.stop = StopOrder::none;
    order.release = true;
    EXPECT_EQ(next(), Step::kill);
    course.terminated = kNow;  // A kill may overtake a stop.
    EXPECT_EQ(next(), Step::kill);
}

TEST_F(CourseTest, a_stop_before_the_program_began_skips_it) {
    order.stop = StopOrder::stop;
    EXPECT_EQ(next(), Step::skip_program);
    course.phase = NodePhase::downloading;
    EXPECT_EQ(next(), Step::skip_program);
    course.working = true;
    EXPECT_EQ(next(), Step::cancel);
    course.cancelling = true;
    EXPECT_EQ(next(), Step::wait);
}

TEST_F(CourseTest, a_stop_lets_uploads_finish_and_a_kill_does_not) {
    course.phase = NodePhase::uploading;
    course.working = true;
    order.stop = StopOrder::stop;
    EXPECT_EQ(next(), Step::wait);
    order.stop = StopOrder::kill;
    EXPECT_EQ(next(), Step::cancel);
}

TEST_F(CourseTest, nobody_leaves_while_something_runs) {
    order.release = true;
    course.working = true;
    EXPECT_EQ(next(), Step::cancel);
    course.cancelling = true;
    EXPECT_EQ(next(), Step::wait);
}

}  // namespace
}  // namespace gruca::agent
