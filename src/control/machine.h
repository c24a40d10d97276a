// control/machine.h
//
// The control plane's whole behaviour: what happened goes in, what to do comes out. Deterministic:
// no socket, file, thread, clock or random number; time and new identities come in with the input.
// The service's loop makes each input durable together with the jobs it changed, then carries out
// the outputs. After a crash, `recover` says again what must be done, so every output names
// something that may be done twice.
//
// A job's life, as DescribeTrainingJob shows it:
//
//   Starting -> Pending (queued for slots, FIFO, all nodes or none) -> Downloading -> Training ->
//   Uploading -> Completed | Failed | Stopped | Stopped(MaxRuntimeExceeded)
//
// One terminal state, whatever races: the first cause recorded wins, and a job is terminal only
// when nothing of it can run any more. So every node ends in one of these ways:
//
//   * It has finished, its order releases it, and its agent ends, last of all. NodeLost.
//   * Its agent is gone or silent without that. NodeLost.
//   * It is released and still there after kReleaseGrace.
//
// and each is answered by RemoveNode, and is gone when NodeRemoved says so. Where a process hangs
// in the kernel that cannot be (NodeStuck): after kStuckGrace the job is over all the same, says
// why, and the node keeps its slot and its address until it is gone. What hangs was killed: it runs
// no instruction of the job any more.
//
// Owned by the service's loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "spec/node.h"
#include "spec/subnet.h"
#include "spec/train_job.h"

namespace gruca::control {

constexpr std::chrono::seconds kReleaseGrace{30};  // For an agent to clean up and end.
constexpr std::chrono::seconds kRemoveRetry{10};   // Until a removal not confirmed is asked again.
constexpr std::chrono::seconds kStopSlack{60};     // Beyond a stop's grace, until it is a kill.
constexpr std::chrono::seconds kKillGrace{30};     // For an agent to report the end after a kill.
constexpr std::chrono::seconds kStuckGrace{10};    // For what hangs to end before its job does.
constexpr int kQueuedJobsMax = 10'000;
constexpr int kTagsMax = 50;  // Of one job.
constexpr int kFailureReasonBytesMax = 1024;

struct Settings {
    int slots = 4;  // Instances that may run at once.
    int cores = 1;  // Of the machine; divided among a job's instances.
    std::chrono::seconds stop_grace{120};
    std::chrono::seconds peer_grace{10};            // For the peers of a node that failed.
    spec::Subnet addresses = spec::kLoopbackNodes;  // Of nodes.
    bool isolates = false;  // Nodes have networks of their own, and jobs may ask for isolation.
};

// One row of SecondaryStatusTransitions.
struct Transition {
    std::string status;
    std::string message;
    TimePoint start = {};
    std::optional<TimePoint> end = {};
};

struct Node {
    std::string id;
    std::string host;              // "algo-1"
    std::string address;           // "198.18.0.16"; "127.64.0.16" in the machine's network.
    spec::NodeReport report = {};  // The furthest heard.
    std::int64_t order_version = 1;
    spec::StopOrder stop = spec::StopOrder::none;
    std::chrono::seconds stop_grace{0};
    bool assemble = false;
    bool released = false;
    bool left = false;  // Its agent has ended after its release.
    bool lost = false;  // Its agent is gone or silent, and should not be.
    std::string lost_why = {};
    bool gone = false;           // Nothing of it runs.
    std::string stuck_why = {};  // Why it cannot be removed, if it cannot.
    std::optional<TimePoint> stuck_since = {};
    TimePoint ordered_at = {};                      // Of its last order, or of its removal's.
    std::optional<TimePoint> stop_ordered_at = {};  // Of the first order to stop.
    std::optional<TimePoint> failed_at = {};        // By itself, not dragged down by others.
};

enum class EndCause { none, stop_requested, max_runtime, node_failed, node_lost };

using Tags = std::vector<std::pair<std::string, std::string>>;

struct Job {
    spec::TrainJob spec;
    std::int64_t number = 0;  // Order of creation.
    std::string status;       // "InProgress", …
    std::string secondary;    // "Starting", …
    std::vector<Transition> transitions;
    TimePoint created = {};
    std::optional<TimePoint> training_started = {};
    std::optional<TimePoint> ended = {};
    TimePoint modified = {};
    std::string failure_reason;  // Set when Failed.
    EndCause cause = EndCause::none;
    std::optional<TimePoint> cause_at = {};
    std::optional<TimePoint> released_at = {};  // All nodes have finished; the outcome is decided.
    std::string seed;                           // Of CreateJob.
    std::vector<Node> nodes;                    // Empty until it is given slots.
    Tags tags;
    spec::JobCredentials credentials;

    bool is_terminal() const;
    int nodes_left() const;  // That are not gone.
    // Over, and with nothing left that holds a slot.
    bool is_settled() const { return is_terminal() && nodes_left() == 0; }
    Json to_json() const;  // The durable form, docs/formats/state.md.
    static Job from_json(const Json& json);
};

struct State {
    Settings settings;
    // By name: every job that is not settled, and of those that are, the one that an API command is
    // about. Others that are over may be here or not; nothing depends on them.
    std::map<std::string, Job> jobs;
    std::int64_t next_number = 1;
};

// What happened. `request` in an API command is echoed in its Reply.
struct CreateJob {
    std::string request;
    spec::TrainJob spec;
    Tags tags;
    spec::JobCredentials credentials;  // New ones, for this job.
    std::string seed;                  // 16 hex digits, new: node ids are made of it.
};
struct StopJob {
    std::string request;
    std::string name;
};
struct AddTags {
    std::string request;
    std::string arn;
    Tags tags;
};
struct DeleteTags {
    std::string request;
    std::string arn;
    std::vector<std::string> keys;
};
struct NodeReported {
    spec::NodeReport report;
};
struct NodeLost {  // The agent is gone, or silent for too long. Its log has been salvaged before.
    std::string node_id;
    std::string why;
};
struct NodeRemoved {  // A RemoveNode has been carried out: nothing of the node runs any more.
    std::string node_id;
};
struct NodeStuck {  // A RemoveNode does not work: something of the node does not end.
    std::string node_id;
    std::string why;  // "process 4711 (cat) hangs in the kernel in request_wait_answer"
};
struct Tick {};

using Input = std::variant<CreateJob, StopJob, AddTags, DeleteTags, NodeReported, NodeLost,
                           NodeRemoved, NodeStuck, Tick>;

Json to_json(const Input& input);  // For the log of inputs.
Input input_from_json(const Json& json);

Json tags_to_json(const Tags& tags);  // As the API writes them: [{"Key": …, "Value": …}, …].
Tags tags_from_json(const Json& json);

// What to do.
struct Reply {  // The answer to an API command. An error carries the message that AWS would send.
    std::string request;
    std::optional<ErrorCode> error;
    std::string message;
    Json body = Json::object();
};
struct LaunchNode {  // Idempotent by node id.
    std::string node_id;
    std::string job;
    std::string host;
};
struct OrderChanged {  // Wake this node's poll; order_for says what it should be told.
    std::string node_id;
};
// End what is left of the node, forget it and its key, and say NodeRemoved when that is done.
struct RemoveNode {
    std::string node_id;
};
struct JobChanged {  // Its row must be written, in the same transaction as the input.
    std::string name;
};
struct WakeAt {  // A Tick is wanted at this time. Wanting one too many does no harm.
    TimePoint when;
};

using Output = std::variant<Reply, LaunchNode, OrderChanged, RemoveNode, JobChanged, WakeAt>;

std::vector<Output> step(State& state, const Input& input, TimePoint now);

// After a restart: every output that may not have been carried out.
std::vector<Output> recover(const State& state, TimePoint now);

// What a node should be told; nothing when the node is unknown or gone.
std::optional<spec::NodeOrder> order_for(const State& state, const std::string& node_id);

const Job* find_job(const State& state, const std::string& name);
// ARNs are resolved without regard to letter case.
const Job* find_job_by_arn(const State& state, const std::string& arn);
const Job* find_job_of_node(const State& state, const std::string& node_id);

}  // namespace gruca::control
