// agent/checkpoint_sync.h
//
// Keeps a directory of a job and a prefix of the store alike, for trainers that write checkpoints
// as plain files: the prefix is brought down before the start, new and changed files go up while
// the program runs once they have not changed for kSettled, and all that is left at the end. A file
// that was brought down or up and is deleted by the program is deleted in the store; no other
// object ever is.
//
// Owned by one thread, except complain's, which is called from that thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/beneath.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/object_store.h"

namespace gruca::agent {

constexpr std::chrono::seconds kSettled{3};

struct CheckpointSyncOptions {
    std::string s3_uri;               // Of the job; a '/' is appended where it lacks one.
    std::filesystem::path directory;  // Written by the job.
    // A line for the job's log.
    std::function<void(const std::string&)> complain;
};

class CheckpointSync {
  public:
    CheckpointSync(CheckpointSyncOptions options, store::ObjectStore& store, const Clock& clock);

    // Throws as agent/inputs.h says. An empty prefix is fine.
    void restore(const std::stop_token& stop);

    // One look at the directory. Failures go to complain, each text once, and are tried again.
    void upload_settled();
    // Until `stop`: a look every second.
    void run(const std::stop_token& stop);
    // Whatever is there, settled or not, since the program has ended. What could not be stored goes
    // to complain, and the first of it is thrown, once the rest is in the store.
    void finish();

  private:
    struct Version {
        std::int64_t bytes = 0;
        std::int64_t modified_ns = 0;
        friend bool operator==(const Version&, const Version&) = default;
    };

    std::optional<Error> look(bool all);
    void upload(const TreeEntry& file, bool all);
    void tell(const Error& problem);
    static Version version_of(const struct stat& facts);

    const CheckpointSyncOptions options_;
    const std::string prefix_;  // "bucket/key/"
    store::ObjectStore& store_;
    const Clock& clock_;
    std::map<std::string, Version> known_;  // What the store has, brought down or up from here.
    std::map<std::string, Version> seen_;   // At the last look.
    std::string told_;
};

// "s3://bucket/key" or "s3://bucket/key/" -> "bucket/key/"
std::string checkpoint_prefix(const std::string& s3_uri);

}  // namespace gruca::agent
