// agent/inputs.h
//
// Input channels in File mode: objects of the store become files of the channel's directory before
// the program starts. Which objects a node gets, and under which names, are pure functions of the
// sorted keys, so every node works them out alone.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "spec/node.h"
#include "store/object_store.h"

namespace gruca::agent {

struct InputFile {
    store::ObjectInfo object;
    std::string path;  // Relative to the channel's directory.
};

struct NodeRank {
    std::size_t index = 0;
    std::size_t count = 1;
};

// Every object under the store prefix "bucket/key", as below. `what` names it in messages.
std::vector<InputFile> files_under(const store::ObjectStore& store, const std::string& prefix,
                                   const std::string& what);

// What this node's directory will hold. An object's name is the part of its key after the last '/'
// at or before the end of the prefix. Keys that end in '/' are folders' place-holders and skipped.
// ShardedByS3Key deals the sorted keys in turn: node i gets those whose number is i modulo count.
//
// Throws invalid_argument for a key that cannot be a file's name below the channel (an empty, "."
// or ".." part, a NUL, a name longer than a file's may be, a file where another key needs a
// directory), and not_found, naming URI and channel, when the prefix has no object.
std::vector<InputFile> files_of_channel(const store::ObjectStore& store,
                                        const spec::TaskChannel& channel, NodeRank rank);

// Brings the files, one after the other. Throws resource_exhausted with what is needed and what is
// free, before the first byte where that can be known; cancelled when `stop` is requested.
void download(const store::ObjectStore& store, const std::vector<InputFile>& files,
              const std::filesystem::path& directory, const std::stop_token& stop);

}  // namespace gruca::agent
