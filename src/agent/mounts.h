// agent/mounts.h
//
// What a sandbox does with mounts. All of it happens in the mount namespace of the caller, which
// must be private.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace gruca::agent {

// A copy of what is mounted at `path` and below, not yet attached anywhere.
UniqueFd copy_of_mount(const std::string& path);
void attach(const UniqueFd& tree, const std::string& target);

// Of the mount at `path`, which is relative to `directory` or empty to mean it, and those below.
void set_mount_attributes(int directory, const char* path, std::uint64_t attributes);

void mount_new(const char* kind, const std::string& target, unsigned long flags,
               const char* options);

// Puts a private read-only directory in the place of `directory`: it has the same entries but the
// files that are `without` or versions of it, and an empty directory `with` (a relative path), if
// one is named. Entries that the
// machine makes in `directory` later do not appear. Throws invalid_argument when it has more than
// kEntriesMax.
constexpr std::size_t kEntriesMax = 10000;
void replace_directory(const std::filesystem::path& directory, const std::string& without,
                       const std::filesystem::path& with = {});

// Makes sure that `path`, which lies on this machine, cannot be read: an existing directory is
// covered by an empty one. In the place of a file's directory comes a private one without the file,
// because a cover would go with the file when the machine replaces it by rename(2); so too for what
// does not exist yet. With a file go its versions, whose names begin with its own: backups, and
// what was to become it when its writer was killed.
void hide(const std::filesystem::path& path);

}  // namespace gruca::agent
