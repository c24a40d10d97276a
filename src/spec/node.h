// spec/node.h
//
// What the service and the agent of one node say to each other. The service states an *order*: what
// this node should be doing now. The agent converges on it and *reports* where it is. Both are
// declarative and may be repeated, so a message lost, doubled or late does no harm.
//
//   Gruca.PollOrder   {"node": id, "seen_version": n} -> NodeOrder
//                     Waits up to kPollWait for a version newer than the one seen.
//   Gruca.ReportNode  NodeReport -> {}
//                     Idempotent; reports only ever move a node forward.
//   Gruca.AppendLog   bytes, with the headers x-gruca-node and x-gruca-offset -> {"size": n}
//                     Appends at the offset; bytes the service has are skipped; an offset beyond
//                     its size is refused with the size it has, and the agent goes back to it.
//
// All three are AWS JSON 1.1 calls signed with the node's key, service name "gruca".
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace gruca::spec {

constexpr std::chrono::seconds kPollWait{20};

// The network that the nodes of this machine have for themselves, docs/formats/job-network.md.
struct NodeNetwork {
    std::string bridge;           // Joins the nodes, the machine and, through it, the world.
    std::string isolated_bridge;  // Joins nodes and nothing else.
    std::string subnet;           // "198.18.0.0/18": node addresses come from it.
    std::string gateway;          // The machine's own address in it.
    std::string endpoint;         // Where programs in it reach the service.

    Json to_json() const;
    static NodeNetwork from_json(const Json& json);
};

// What a node may take of its machine.
struct NodeLimits {
    std::uint64_t memory_bytes = 0;          // Of the node. 0: only the limit of all nodes.
    std::uint64_t memory_reserve_bytes = 0;  // What all nodes together leave. 0: no limit.
    int processes = 16384;                   // And threads. The agent may allow fewer.

    Json to_json() const;
    static NodeLimits from_json(const Json& json);
    friend bool operator==(const NodeLimits&, const NodeLimits&) = default;
};

// The file (mode 0600) that a node's agent is started with.
struct NodeConfig {
    std::string node_id;   // "<job>-algo-1-<6 hex>", unique for ever.
    std::string endpoint;  // "http://127.0.0.1:7717"
    std::string region;
    std::string access_key;
    std::string secret_key;
    std::string work_dir;   // The agent's own; everything the node writes lies below it.
    std::string store_uri;  // "file:///…": the object store of buckets.
    std::vector<std::string> hidden_paths;  // Hidden from jobs: the service's data, AWS files, …
    std::optional<NodeNetwork> network = {};  // Nothing: jobs share the machine's network.
    NodeLimits limits = {};

    Json to_json() const;
    static NodeConfig from_json(const Json& json);
};

struct TaskChannel {
    std::string name;
    std::string s3_uri;
    std::string input_mode;      // "File"
    std::string distribution;    // "FullyReplicated" or "ShardedByS3Key"
    std::string content_type;    // Empty: not given.
    std::string record_wrapper;  // "None"
};

struct TaskCheckpoint {
    std::string s3_uri;
    std::string local_path;
};

// One node's part of a job: all that the container contract needs.
struct Task {
    std::string job_name;
    std::string job_arn;
    std::string region;
    std::string host;                    // "algo-2"
    std::vector<std::string> hosts;      // Every host of the job; algo-1 first. Index = rank.
    std::vector<std::string> addresses;  // Of hosts, same order. 127.…: the network is shared.
    bool isolated = false;               // EnableNetworkIsolation: reaches its peers only.
    std::string instance_type;
    std::string image;                      // "gruca/llm-trainer" or "gruca/host"
    std::vector<std::string> entrypoint;    // Empty: the image's own.
    std::vector<std::string> arguments;     // Empty: {"train"}.
    Json hyperparameters = Json::object();  // string -> string, as in the request.
    Json environment = Json::object();      // string -> string, as in the request.
    std::vector<TaskChannel> channels;
    std::string output_uri;  // "<S3OutputPath>/<job>/output"
    bool compress_output = true;
    std::optional<TaskCheckpoint> checkpoint;
    int threads = 1;             // Cores of the machine divided by its instances.
    std::string job_access_key;  // Temporary credentials of the job.
    std::string job_secret_key;
    std::string job_session_token;

    Json to_json() const;
    static Task from_json(const Json& json);
};

enum class StopOrder {
    none,
    // SIGTERM now, SIGKILL after the grace; then upload what there is. A program that has not
    // begun does not begin, and the node reports `uploaded` with nothing to upload.
    stop,
    // SIGKILL now, upload nothing. The node reports `uploaded` when its log is complete.
    kill,
};

struct NodeOrder {
    std::int64_t version = 0;  // Grows with every change. 0: nothing yet.
    std::optional<Task> task;
    StopOrder stop = StopOrder::none;
    std::chrono::seconds stop_grace{120};
    // For algo-1 once every node has uploaded its part: merge the parts into the final archives.
    bool assemble = false;
    // Nothing more to do: end what may still run, clean up and exit. The agent exits last.
    bool release = false;

    Json to_json() const;
    static NodeOrder from_json(const Json& json);
};

// In this order, none is skipped except by an end; a later one implies the earlier ones.
enum class NodePhase {
    launching,  // Ordered, not heard of yet.
    ready,      // The agent runs.
    downloading,
    training,
    uploading,  // The program has ended; its outputs go to the store.
    uploaded,   // This node's part is in the store and its log is complete.
    assembled,  // algo-1 only: the final archives are in the store.
};

struct NodeReport {
    std::string node_id;
    NodePhase phase = NodePhase::ready;
    // Of the training program, once it has ended.
    bool ended = false;
    int exit_code = 0;  // 128 + signal when killed.
    int exit_signal = 0;
    TimePoint ended_at = {};
    // Why this node cannot go on or why the program failed, in words for FailureReason, without its
    // prefix: the failure file's text, or what the agent saw. Empty: nothing to say.
    std::string failure = {};
    // Whose fault: "AlgorithmError" (the program), "ClientError" (data, image, entrypoint, upload),
    // "InternalServerError" (the node). Empty with no failure.
    std::string failure_kind = {};
    // The node cannot go on, before the program or after it, for the reason above: nothing of it
    // runs, its log is complete, and it waits for its release.
    bool given_up = false;
    TimePoint gave_up_at = {};

    Json to_json() const;
    static NodeReport from_json(const Json& json);
};

const char* name(StopOrder stop);
const char* name(NodePhase phase);
NodePhase node_phase_from(const std::string& name);  // Throws invalid_argument.
StopOrder stop_order_from(const std::string& name);  // Throws invalid_argument.

}  // namespace gruca::spec
