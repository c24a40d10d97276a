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
// One terminal state, whatever races: the first cause wins, and a job is terminal only when every
// node of it has been released or is gone. Owned by the service's loop thread.
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
#include "spec/train_job.h"

namespace gruca::control {

struct Settings {
    int slots = 4;  // Instances that may run at once.
    int cores = 1;  // Of the machine; divided among a job's instances.
    std::chrono::seconds stop_grace{120};
    std::chrono::seconds peer_grace{10};  // For the peers of a node that failed.
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
    std::string address;           // "127.64.0.1"
    spec::NodeReport report = {};  // The furthest heard.
    std::int64_t order_version = 1;
    spec::StopOrder stop = spec::StopOrder::none;
    std::chrono::seconds stop_grace{0};
    bool assemble = false;
    bool released = false;
    bool gone = false;
};

enum class EndCause { none, stop_requested, max_runtime, node_failed, node_lost };

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
    std::vector<Node> nodes;  // Empty until it is given slots.
    std::vector<std::pair<std::string, std::string>> tags;
    spec::JobCredentials credentials;

    bool is_terminal() const;
    Json to_json() const;  // The durable form, docs/formats/state.md.
    static Job from_json(const Json& json);
};

struct State {
    Settings settings;
    std::map<std::string, Job> jobs;  // By name.
    std::int64_t next_number = 1;
};

// What happened. `request` in an API command is echoed in its Reply.
struct CreateJob {
    std::string request;
    spec::TrainJob spec;
    std::vector<std::pair<std::string, std::string>> tags;
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
    std::vector<std::pair<std::string, std::string>> tags;
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
struct Tick {};

using Input = std::variant<CreateJob, StopJob, AddTags, DeleteTags, NodeReported, NodeLost, Tick>;

Json to_json(const Input& input);  // For the log of inputs.
Input input_from_json(const Json& json);

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
struct RemoveNode {  // The node has released itself or is gone: forget it and its key.
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
