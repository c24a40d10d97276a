#include "agent/course.h"

namespace gruca::agent {
namespace {

using spec::NodePhase;
using spec::StopOrder;

Step end_program(const Course& course, const spec::NodeOrder& order, Instant now) {
    if (course.destroyed) {
        return now >= *course.destroyed + kDestroyGrace ? Step::abandon : Step::wait;
    }
    if (course.killed) {
        return now >= *course.killed + kKeeperGrace ? Step::destroy : Step::wait;
    }
    if (order.release || order.stop == StopOrder::kill) return Step::kill;
    if (order.stop == StopOrder::none) return Step::wait;
    if (!course.terminated) return Step::terminate;
    return now >= *course.terminated + order.stop_grace ? Step::kill : Step::wait;
}

// Whether the work at hand has lost its purpose.
bool is_pointless(const Course& course, const spec::NodeOrder& order) {
    if (order.release || order.stop == StopOrder::kill) return true;
    return course.phase == NodePhase::downloading && order.stop == StopOrder::stop;
}

Step tell_the_end(const Course& course) {
    if (!course.closing_log) return Step::close_log;
    if (!course.log_complete || course.told) return Step::wait;
    return Step::tell_end;
}

}  // namespace

Step next_step(const Course& course, const spec::NodeOrder& order, Instant now) {
    if (course.running) return end_program(course, order, now);
    if (course.working) {
        return !course.cancelling && is_pointless(course, order) ? Step::cancel : Step::wait;
    }
    if (order.release) return Step::leave;
    if (course.given_up) return tell_the_end(course);
    if (!order.task) return Step::wait;
    const bool stopped = order.stop != StopOrder::none;
    switch (course.phase) {
        case NodePhase::launching:
        case NodePhase::ready:
            return stopped ? Step::skip_program : Step::download;
        case NodePhase::downloading:
            return stopped ? Step::skip_program : Step::start_program;
        case NodePhase::training:
            return Step::wait;  // Not running: its end is being recorded.
        case NodePhase::uploading:
            return course.settled ? tell_the_end(course) : Step::settle;
        case NodePhase::uploaded:
            return order.assemble ? Step::assemble : Step::wait;
        case NodePhase::assembled:
            return Step::wait;
    }
    return Step::wait;
}

std::optional<Instant> next_deadline(const Course& course, const spec::NodeOrder& order) {
    if (!course.running) return std::nullopt;
    if (course.destroyed) return *course.destroyed + kDestroyGrace;
    if (course.killed) return *course.killed + kKeeperGrace;
    if (course.terminated) return *course.terminated + order.stop_grace;
    return std::nullopt;
}

}  // namespace gruca::agent
