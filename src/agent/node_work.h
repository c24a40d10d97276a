// agent/node_work.h
//
// The doing of a node's agent: everything that touches files, the store and the program, one method
// a step of its course. Knows nothing of orders and reports; agent/agent.h decides.
//
// Owned by the agent: one step at a time, from any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "agent/checkpoint_sync.h"
#include "agent/failure_text.h"
#include "agent/keeper.h"
#include "agent/node_cgroups.h"
#include "base/clock.h"
#include "spec/node.h"
#include "store/object_store.h"

namespace gruca::agent {

struct NodeWorkOptions {
    spec::NodeConfig config;
    std::filesystem::path program;  // gruca-agent; gruca's other programs lie beside it.
};

class NodeWork {
  public:
    NodeWork(NodeWorkOptions options, store::ObjectStore& store, const Clock& clock);

    std::filesystem::path log() const;

    // The container's files, its input channels and the checkpoints it goes on from.
    void download(const spec::Task& task, const std::stop_token& stop);

    // From here on checkpoints go up as they are written.
    std::unique_ptr<Keeper> start(const spec::Task& task);

    // All that runs on the node, without its keeper's help, where the kernel can do that.
    void kill_everything() const;

    // After the program: the last checkpoints; of a node other than the first, also its part of
    // the outputs, if `outputs`.
    void settle(const spec::Task& task, bool outputs, const std::stop_token& stop);

    // On the first host, once every part is there: the final archives.
    void assemble(const spec::Task& task, const std::stop_token& stop);

    std::string why_failed(const spec::Task& task, const Ending& ending) const;
    // Of a program that has not failed: what its user should know all the same goes into its log.
    void remark(const spec::Task& task) const;

    // Stops what goes on in the background.
    void clean_up();

    // A line for the job's user, in the job's log.
    void say(const std::string& line) const;

  private:
    std::filesystem::path work() const { return options_.config.work_dir; }
    std::filesystem::path ml() const { return work() / "ml"; }
    std::vector<Bind> binds(const spec::Task& task);
    void add_scratch(std::vector<Bind>& binds) const;
    void make_reserve() const;
    void upload(const std::string& what, const std::function<void()>& body) const;
    void upload_parts(const spec::Task& task, const std::stop_token& stop);
    void assemble_all(const spec::Task& task, const std::stop_token& stop);
    FailureFacts facts_of(const spec::Task& task, const Ending& ending) const;
    void assemble_one(const spec::Task& task, const std::string& name, const std::string& tree,
                      const std::stop_token& stop);

    const NodeWorkOptions options_;
    store::ObjectStore& store_;
    const Clock& clock_;
    std::unique_ptr<NodeCgroups> cgroups_;
    std::unique_ptr<CheckpointSync> checkpoints_;  // Of trainers that know nothing of the store.
    std::jthread syncing_;                         // Uses checkpoints_ until it is joined.
};

}  // namespace gruca::agent
