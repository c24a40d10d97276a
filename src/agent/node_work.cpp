#include "agent/node_work.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "agent/beneath.h"
#include "agent/container_environment.h"
#include "agent/container_files.h"
#include "agent/disk_usage.h"
#include "agent/inputs.h"
#include "agent/job_network.h"
#include "agent/oom_record.h"
#include "agent/outputs.h"
#include "agent/remote_shell.h"
#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "net/url.h"
#include "spec/node_directory.h"
#include "spec/output_parts.h"
#include "store/local_store.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

// What the first host archives, and where it lies below /opt/ml.
constexpr const char* kModel = "model";
constexpr const char* kModelTree = "model";
constexpr const char* kOutput = "output";
constexpr const char* kOutputTree = "output/data";

std::string part_key(const spec::Task& task, const std::string& host, const std::string& name) {
    return spec::parts_prefix(task.job_name) + host + "/" + name + ".tar";
}

NodeRank rank_of(const spec::Task& task) {
    const auto found = std::find(task.hosts.begin(), task.hosts.end(), task.host);
    if (found == task.hosts.end()) {
        throw Error(ErrorCode::internal,
                    "the task names a host that it does not list: " + task.host);
    }
    return {.index = static_cast<std::size_t>(found - task.hosts.begin()),
            .count = task.hosts.size()};
}

bool is_first(const spec::Task& task) {
    return rank_of(task).index == 0;
}

std::string output_prefix(const spec::Task& task) {
    const net::S3Uri uri = net::parse_s3_uri(task.output_uri);
    return uri.bucket + "/" + uri.key + "/";
}

// A job of one node has nobody to talk to.
std::optional<RemoteShellOrder> remote_shell_order(const spec::Task& task) {
    if (task.hosts.size() < 2) return std::nullopt;
    return RemoteShellOrder{.address = task.addresses.at(rank_of(task).index),
                            .secret = remote_shell_secret(task)};
}

// A directory of the job below its /opt/ml; nothing when the job has removed it or made it a link.
std::optional<UniqueFd> tree_of(const fs::path& ml, const std::string& tree) {
    const UniqueFd root = open_file(ml, O_RDONLY | O_DIRECTORY);
    return find_directory_beneath(root.get(), tree);
}

}  // namespace

NodeWork::NodeWork(NodeWorkOptions options, store::ObjectStore& store, const Clock& clock)
    : options_(std::move(options)), store_(store), clock_(clock) {
    fs::create_directories(work());
}

fs::path NodeWork::log() const {
    return work() / spec::node_directory::kLog;
}

void NodeWork::say(const std::string& line) const {
    log_warning("{}", line);
    const UniqueFd file = open_file(log(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    write_all(file.get(), bytes_of("gruca: " + line + "\n"));
}

void NodeWork::download(const spec::Task& task, const std::stop_token& stop) {
    container_command(task, options_.program.parent_path());  // Refused before gigabytes move.
    write_container_files(task, ml());
    write_remote_shell_files(task, options_.program, ml());
    replace_file(work() / "hosts", hosts_file(task));
    replace_file(work() / "resolv.conf", resolver_text());
    for (const spec::TaskChannel& channel : task.channels) {
        const std::vector<InputFile> files = files_of_channel(store_, channel, rank_of(task));
        log_info("channel {}: {} files from {}", channel.name, files.size(), channel.s3_uri);
        agent::download(store_, files, ml() / "input" / "data" / channel.name, stop);
    }
    if (!task.checkpoint) return;
    fs::create_directories(work() / "checkpoints");
    if (writes_own_checkpoints(task)) return;
    checkpoints_ = std::make_unique<CheckpointSync>(
        CheckpointSyncOptions{.s3_uri = task.checkpoint->s3_uri,
                              .directory = work() / "checkpoints",
                              .complain = [this](const std::string& line) { say(line); }},
        store_, clock_);
    checkpoints_->restore(stop);
}

// A /tmp of its own for every node: what lies there goes with the node.
void NodeWork::add_scratch(std::vector<Bind>& binds) const {
    for (const auto& [name, target] :
         {std::pair("tmp", "/tmp"), std::pair("var-tmp", "/var/tmp")}) {
        const fs::path directory = work() / name;
        fs::create_directories(directory);
        fs::permissions(directory, fs::perms::all | fs::perms::sticky_bit);
        binds.push_back({.source = directory.string(), .target = target});
    }
}

std::vector<Bind> NodeWork::binds(const spec::Task& task) {
    std::vector<Bind> result;
    add_scratch(result);
    result.push_back({.source = ml().string(), .target = kMl});
    if (!task.checkpoint) return result;
    result.push_back(
        {.source = (work() / "checkpoints").string(), .target = task.checkpoint->local_path});
    auto* const local = dynamic_cast<store::LocalStore*>(&store_);
    if (local == nullptr) {
        throw Error(ErrorCode::invalid_argument,
                    "checkpoints need a store in a directory of this machine");
    }
    const fs::path directory = local->directory_for(checkpoint_prefix(task.checkpoint->s3_uri));
    result.push_back({.source = directory.string(), .target = kCheckpointMount});
    return result;
}

std::unique_ptr<Keeper> NodeWork::start(const spec::Task& task) {
    const auto network = network_of(task, options_.config.network);
    const std::string& endpoint =
        network ? options_.config.network->endpoint : options_.config.endpoint;
    KeeperOrder order{.argv = container_command(task, options_.program.parent_path()),
                      .environment = container_environment(task, endpoint),
                      .hostname = task.host,
                      .hosts_file = (work() / "hosts").string(),
                      .resolver_file = network ? (work() / "resolv.conf").string() : "",
                      .network = network,
                      .remote_shell = remote_shell_order(task),
                      .binds = binds(task),
                      .hidden_paths = options_.config.hidden_paths};
    order.hidden_paths.push_back(work().parent_path().string());
    if (!cgroups_) {
        cgroups_ = std::make_unique<NodeCgroups>(
            CgroupOptions{.name = options_.config.node_id,
                          .record = work() / spec::node_directory::kCgroups,
                          .limits = options_.config.limits});
    }
    make_reserve();
    auto keeper = std::make_unique<Keeper>(
        KeeperOptions{.program = options_.program,
                      .work_dir = work(),
                      .account = [this](pid_t pid) { cgroups_->add(pid); }},
        order);
    if (checkpoints_) {
        syncing_ = std::jthread([this](std::stop_token stop) { checkpoints_->run(stop); });
    }
    return keeper;
}

void NodeWork::make_reserve() const {
    const UniqueFd file = open_file(work() / kReserve, O_WRONLY | O_CREAT, 0600);
    if (::posix_fallocate(file.get(), 0, static_cast<off_t>(kReserveBytes)) != 0) {
        log_warning("the disk has no room for a reserve of {}", human_bytes(kReserveBytes));
    }
}

void NodeWork::kill_everything() const {
    if (cgroups_) cgroups_->kill();
}

void NodeWork::settle(const spec::Task& task, bool outputs, const std::stop_token& stop) {
    syncing_ = {};
    if (checkpoints_) {
        upload("Checkpoint upload failed", [&] { checkpoints_->finish(); });
    }
    if (outputs && !is_first(task)) {
        upload("Artifact upload failed", [&] { upload_parts(task, stop); });
    }
}

// Does it; a failure of it says what failed and, when that is why, of what the disk is full.
void NodeWork::upload(const std::string& what, const std::function<void()>& body) const {
    const std::optional<Error> failure = run_guarded(body);
    if (!failure) return;
    std::string text = what + ": " + failure->message();
    if (failure->code() == ErrorCode::resource_exhausted) {
        if (const std::string disk = disk_full_text(work(), clock_); !disk.empty())
            text += "; " + disk;
    }
    throw Error(failure->code(), text);
}

void NodeWork::upload_parts(const spec::Task& task, const std::stop_token& stop) {
    for (const auto& [name, tree] :
         {std::pair(kModel, kModelTree), std::pair(kOutput, kOutputTree)}) {
        const std::optional<UniqueFd> root = tree_of(ml(), tree);
        if (!root || is_empty_beneath(root->get())) continue;
        const auto sink = make_archive(store_, part_key(task, task.host, name), Compression::none);
        add_tree(root->get(), *sink, stop);
        sink->finish();
    }
}

void NodeWork::assemble_one(const spec::Task& task, const std::string& name,
                            const std::string& tree, const std::stop_token& stop) {
    const std::string prefix = output_prefix(task);
    FirstWins merged(task.compress_output
                         ? make_archive(store_, prefix + name + ".tar.gz", Compression::gzip)
                         : make_plain_objects(store_, prefix + tree + "/"));
    if (const std::optional<UniqueFd> root = tree_of(ml(), tree)) {
        add_tree(root->get(), merged, stop);
    }
    for (const std::string& host : task.hosts) {
        const std::string key = part_key(task, host, name);
        if (store_.find(key)) add_archive(store_, key, merged, stop);
    }
    merged.finish();
}

void NodeWork::assemble(const spec::Task& task, const std::stop_token& stop) {
    upload("Artifact upload failed", [&] { assemble_all(task, stop); });
}

void NodeWork::assemble_all(const spec::Task& task, const std::stop_token& stop) {
    assemble_one(task, kModel, kModelTree, stop);
    const std::optional<UniqueFd> mine = tree_of(ml(), kOutputTree);
    bool has_output = mine && !is_empty_beneath(mine->get());
    for (const std::string& host : task.hosts) {
        has_output = has_output || store_.find(part_key(task, host, kOutput));
    }
    if (has_output) assemble_one(task, kOutput, kOutputTree, stop);
}

FailureFacts NodeWork::facts_of(const spec::Task& task, const Ending& ending) const {
    FailureFacts facts{.host = task.host,
                       .status = ending.status,
                       .said = failure_file(ml()),
                       .cause = cause_in(log()),
                       .lines = last_lines(log()),
                       .usage = cgroups_ ? cgroups_->usage() : Usage()};
    facts.disk = disk_full_text(work(), clock_);
    if (facts.usage.kills_for_memory > 0) {
        facts.process = oom_victim(options_.config.node_id).value_or("");
    }
    return facts;
}

std::string NodeWork::why_failed(const spec::Task& task, const Ending& ending) const {
    return failure_text(facts_of(task, ending));
}

void NodeWork::remark(const spec::Task& task) const {
    const FailureFacts facts = facts_of(task, {});
    if (facts.usage.kills_for_memory > 0) say(out_of_memory_text(facts));
    if (!facts.disk.empty()) say(facts.disk);
}

void NodeWork::clean_up() {
    syncing_ = {};
    if (cgroups_) {
        const Usage usage = cgroups_->usage();
        log_info("the program used {} of memory at most and {:.1f} s of processor time",
                 human_bytes(usage.memory_bytes_max.value_or(0)),
                 usage.processor_seconds.value_or(0));
        cgroups_.reset();
    }
}

}  // namespace gruca::agent
