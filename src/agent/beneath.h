// agent/beneath.h
//
// Reading what a job wrote. The job is not trusted: its links may point anywhere, its names may be
// those of devices and pipes. Everything here stays beneath the directory it is given, whatever
// the tree holds: links are looked at and never followed, and only regular files are opened.
//
// Pure functions of the file system.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include "base/file.h"

namespace gruca::agent {

// The regular file `path` beneath `root`, opened for reading. Nothing when it is absent, is no
// regular file, or is reached through a link.
std::optional<UniqueFd> find_file_beneath(int root, const std::string& path);

// The same for a directory.
std::optional<UniqueFd> find_directory_beneath(int root, const std::string& path);

struct TreeEntry {
    enum class Kind { directory, file, link };

    std::string path;  // Relative to the root.
    Kind kind = Kind::file;
    struct stat facts = {};
    std::string target = {};  // Of a link.
    int fd = -1;              // Of a file, open for reading while it is visited.
};

// Whether there is nothing that walk_beneath would visit. Looks at names only, until the first.
bool is_empty_beneath(int root);

// Visits everything beneath `root` in the order of names, a directory before what it holds.
// Devices, pipes and sockets are passed over. Throws invalid_argument when the tree is deeper than
// kTreeDepthMax.
void walk_beneath(int root, const std::function<void(const TreeEntry&)>& visit);

constexpr int kTreeDepthMax = 200;

}  // namespace gruca::agent
