// service/core.h
//
// The loop around control: takes what happened from a queue, decides with control::step, makes
// inputs and changed jobs durable in one transaction for all that is waiting, and only then answers
// and acts. The thread that does this is the only one that touches control::State.
//
//   * An answer is given, and an action taken, only after what it rests on is durable.
//   * After a crash between the two, start() takes the actions again: control::recover names them.
//   * A commit that fails answers `unavailable` to every caller in it and takes the state back to
//     what the database holds; what the service itself wanted is tried again.
//   * A node that has neither polled nor reported for heartbeat_lost is given up. After a start
//     every node has that long to be heard of.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "base/random.h"
#include "control/machine.h"
#include "service/auth/key_ring.h"
#include "service/job_board.h"
#include "service/node_keeper.h"
#include "service/state/database.h"
#include "service/telemetry/log_store.h"

namespace gruca::service {

constexpr std::size_t kCommandsMax = 100'000;  // Waiting for the loop; more are refused.
constexpr std::size_t kBatchMax = 512;         // In one transaction.

struct CoreOptions {
    std::chrono::milliseconds heartbeat_lost = std::chrono::seconds(30);
    std::chrono::milliseconds poll_wait = spec::kPollWait;
    // What every node is started with; its id and keys are filled in.
    spec::NodeConfig node_config = {};
};

// What the core works with; all of it outlives the core.
struct CoreParts {
    Database& database;
    KeyRing& keys;
    JobBoard& jobs;
    LogStore& logs;
    store::ObjectStore& store;
    const Clock& clock;
    Random& random;
};

class Core {
  public:
    // Called on the loop's thread; must not block.
    using OnReply = std::function<void(const control::Reply&)>;
    using OnOrder = std::function<void(const spec::NodeOrder&)>;

    struct Poll {
        std::string node_id;
        std::int64_t seen_version = 0;
        OnOrder on_order;
    };

    // Reads the jobs from the database and publishes them.
    Core(CoreParts parts, control::Settings settings);
    ~Core();
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    // Takes up the work: everything that may not have been carried out before.
    void start(CoreOptions options, const ClusterMaker& make_cluster);
    // Returns when the loop has ended; the nodes run on. Polls that wait are not answered.
    void stop();

    // `on_reply` hears the Reply of an API command, or an empty one for anything else, once it is
    // durable. Throws unavailable when too much is waiting or the core has stopped.
    void submit(control::Input input, OnReply on_reply = {});
    // Answered at once when the node's order is newer than the one seen, else when it is, else
    // after poll_wait. A node that is not known is told to end.
    void poll(Poll poll);
    // Looks at the clock again; for tests, whose clock stands still.
    void nudge();

  private:
    struct Command {
        control::Input input;
        OnReply on_reply;
    };
    struct Nudge {};
    struct Launched {
        std::string node_id;
    };
    using Item = std::variant<Command, Poll, Nudge, Launched>;
    struct WaitingPoll {
        Poll poll;
        std::chrono::steady_clock::time_point deadline;
    };
    struct Stepped {
        Command command;
        std::vector<control::Output> outputs;
        bool changed = false;  // Something of it must be durable.
    };

    void load_jobs();
    bool is_current();
    void tell(control::Input input);
    void run();
    std::chrono::milliseconds patience() const;
    void handle(std::vector<Item> items);
    std::vector<Command> commands_of(std::vector<Item>& items);
    void add_due(std::vector<Command>& commands);
    void give_up_silent_nodes();

    void carry_through(std::vector<Command> commands);
    Stepped step(Command command);
    void recall(const control::Input& input);
    void forget_what_is_over(const Changes& changes);
    Changes changes_of(const std::vector<Stepped>& batch);
    void add_output(Changes& changes, std::set<std::string>& changed_jobs,
                    const control::Output& output);
    void add_job(Changes& changes, const std::string& name);
    void publish(const Changes& changes);
    void refuse(std::vector<Command> commands);

    void act(const std::vector<control::Output>& outputs);
    void launch(const std::string& node_id);
    void hear(const std::string& node_id);
    void hear_if_expected(const std::string& node_id);
    void take_poll(Poll poll);
    void answer_poll(const std::string& node_id);
    void answer_late_polls();
    spec::NodeOrder order_of(const Poll& poll) const;
    void remove_orphans();

    const CoreParts parts_;
    Queue<Item> queue_{kCommandsMax};
    CoreOptions options_;  // Set by start, before the loop's thread exists.

    // Owned by the loop's thread.
    control::State state_;
    std::vector<std::string> recalled_;  // Jobs that are over and in the state for this batch.
    bool stale_ = false;  // The state is ahead of the database and must be read again.
    std::set<TimePoint> wakes_;
    // Of living nodes. Nothing: its launch waits, and nobody can expect to hear of it.
    std::map<std::string, std::optional<std::chrono::steady_clock::time_point>> heard_;
    std::map<std::string, WaitingPoll> polls_;  // By node.
    std::vector<Command> again_;  // Wanted by the service itself, after a failed commit.

    std::unique_ptr<NodeKeeper> nodes_;
    std::jthread thread_;
};

}  // namespace gruca::service
