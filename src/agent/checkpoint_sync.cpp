#include "agent/checkpoint_sync.h"

#include <fcntl.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <vector>

#include "agent/inputs.h"
#include "base/boundary.h"
#include "base/error.h"
#include "net/url.h"

namespace gruca::agent {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
constexpr std::size_t kPieceBytes = 1u << 20;

}  // namespace

std::string checkpoint_prefix(const std::string& s3_uri) {
    const net::S3Uri uri = net::parse_s3_uri(s3_uri);
    std::string prefix = uri.bucket + "/" + uri.key;
    if (!prefix.ends_with('/')) prefix += '/';
    return prefix;
}

CheckpointSync::CheckpointSync(CheckpointSyncOptions options, store::ObjectStore& store,
                               const Clock& clock)
    : options_(std::move(options)),
      prefix_(checkpoint_prefix(options_.s3_uri)),
      store_(store),
      clock_(clock) {}

CheckpointSync::Version CheckpointSync::version_of(const struct stat& facts) {
    constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
    return {.bytes = facts.st_size,
            .modified_ns = facts.st_mtim.tv_sec * kNanosecondsPerSecond + facts.st_mtim.tv_nsec};
}

void CheckpointSync::restore(const std::stop_token& stop) {
    const std::vector<InputFile> files = files_under(store_, prefix_, "the checkpoints");
    download(store_, files, options_.directory, stop);
    for (const InputFile& file : files) {
        struct stat facts = {};
        if (::stat((options_.directory / file.path).c_str(), &facts) != 0) {
            throw_errno("cannot look at a restored checkpoint");
        }
        known_[file.path] = version_of(facts);
    }
}

void CheckpointSync::upload_settled() {
    look(false);
}

void CheckpointSync::finish() {
    if (const std::optional<Error> problem = look(true)) throw *problem;
}

void CheckpointSync::run(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
        upload_settled();
        stopped.wait_for(lock, stop, kLookEvery, [] { return false; });
    }
}

std::optional<Error> CheckpointSync::look(bool all) {
    std::map<std::string, Version> now;
    std::optional<Error> first;
    const std::optional<Error> failure = run_guarded([&] {
        const UniqueFd root = open_file(options_.directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        walk_beneath(root.get(), [&](const TreeEntry& entry) {
            if (entry.kind != TreeEntry::Kind::file) return;
            now[entry.path] = version_of(entry.facts);
            if (const auto problem = run_guarded([&] { upload(entry, all); })) {
                const Error told(problem->code(), entry.path + ": " + problem->message());
                tell(told);
                if (!first) first = told;
            }
        });
        for (auto known = known_.begin(); known != known_.end();) {
            if (now.contains(known->first)) {
                ++known;
                continue;
            }
            store_.remove(prefix_ + known->first);
            known = known_.erase(known);
        }
    });
    if (failure) tell(*failure);
    seen_ = std::move(now);
    return first ? first : failure;
}

void CheckpointSync::upload(const TreeEntry& file, bool all) {
    const Version version = version_of(file.facts);
    if (const auto known = known_.find(file.path);
        known != known_.end() && known->second == version) {
        return;
    }
    const auto before = seen_.find(file.path);
    const std::chrono::nanoseconds age =
        clock_.now().time_since_epoch() - std::chrono::nanoseconds(version.modified_ns);
    const bool settled = before != seen_.end() && before->second == version && age >= kSettled;
    if (!settled && !all) return;
    const std::unique_ptr<store::ObjectWriter> object = store_.begin_put(prefix_ + file.path, {});
    std::vector<std::byte> piece(kPieceBytes);
    while (const std::size_t got = read_full(file.fd, piece)) {
        object->write(std::span(piece).first(got));
    }
    struct stat after = {};
    // Changed while it was read: the next look takes it.
    if (::fstat(file.fd, &after) != 0 || version_of(after) != version) return;
    object->commit();
    known_[file.path] = version;
}

void CheckpointSync::tell(const Error& problem) {
    if (problem.message() == told_) return;
    told_ = problem.message();
    options_.complain("checkpoint upload failed: " + told_);
}

}  // namespace gruca::agent
