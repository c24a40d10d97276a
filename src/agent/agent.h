// agent/agent.h
//
// The supervisor of one node. It hears orders from the service and converges on them: downloads,
// runs the program, uploads, reports. The job goes on while the service is away; what there is to
// say is said when it is back.
//
//   poller    hears orders              worker    downloads, uploads, assembles
//   reporter  says where the node is    watcher   waits for the program's end
//
// Each tells the loop of run() through a queue; only the loop changes the node's course, by
// agent/course.h. Owned by the thread that calls run().
#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include "agent/course.h"
#include "agent/log_shipper.h"
#include "agent/node_work.h"
#include "agent/reporter.h"
#include "agent/service_link.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/queue.h"

namespace gruca::agent {

// An agent that the service refuses (it does not know the node any more) for so long ends its job
// and leaves.
constexpr std::chrono::minutes kRefusedMax{10};

class Agent {
  public:
    Agent(NodeWorkOptions options, ServiceLink& service, store::ObjectStore& store,
          const Clock& clock);
    ~Agent();

    void run();  // Returns when the node is released.

  private:
    struct OrderHeard {
        spec::NodeOrder order;
    };
    struct WorkDone {
        std::optional<Error> failure;
    };
    struct ProgramEnded {
        Ending ending;
    };
    struct LogComplete {};
    using Event = std::variant<OrderHeard, WorkDone, ProgramEnded, LogComplete>;

    void poll(const std::stop_token& stop);
    void handle(OrderHeard& event);
    void handle(WorkDone& event);
    void handle(ProgramEnded& event);
    void handle(LogComplete& event);
    bool do_step(Step step);  // False: nothing to do now.
    void work_on(std::function<void(const std::stop_token&)> body);
    void start_program();
    void note_told_to_end();
    void give_up(const std::string& why, const std::string& kind);
    void enter(spec::NodePhase phase);
    void tell();

    const std::string node_id_;
    ServiceLink& service_;
    const Clock& clock_;
    NodeWork work_;
    Course course_;
    spec::NodeOrder order_;
    spec::NodeReport report_;
    std::optional<TimePoint> told_to_end_at_;  // Its program, first.
    Queue<Event> events_;
    std::unique_ptr<Keeper> keeper_;
    Reporter reporter_;
    std::unique_ptr<LogShipper> shipper_;
    std::jthread watcher_;
    std::jthread worker_;
    std::jthread poller_;  // Last: they use all of the above.
};

}  // namespace gruca::agent
