// store/local_directory.h
//
// Directories of a LocalStore, reached from its root one name at a time: no symbolic link is ever
// followed and no path is too long for the system.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>

#include "base/file.h"
#include "store/object_store.h"

namespace gruca::store {

// Nothing when it is absent, or when something else has its name.
std::optional<UniqueFd> find_directory(int root_fd, std::span<const std::string> names);

// Makes whatever is missing on the way. Another process may remove the empty directories again
// before something is put there: a caller that then meets ENOENT starts anew.
UniqueFd make_directory(int root_fd, std::span<const std::string> names);

// Returns when the root and every directory down to `names` would outlive a power cut.
void sync_directories(int root_fd, std::span<const std::string> names);

// Removes the directories from the last name up, as far as they are empty.
void remove_empty_directories(int root_fd, std::span<const std::string> names);

// Removes the directory and those below it, marks of kept ones and all. False when anything else
// lies there, before or by the time it comes to that.
bool remove_unused_directory(int root_fd, std::span<const std::string> names);

// The names in a directory, as they come.
class DirectoryNames {
  public:
    explicit DirectoryNames(UniqueFd directory);
    ~DirectoryNames();
    DirectoryNames(const DirectoryNames&) = delete;
    DirectoryNames& operator=(const DirectoryNames&) = delete;

    int fd() const;
    const char* next();  // Null at the end; valid until the next call. "." and ".." are among them.

  private:
    DIR* const stream_;
};

// What a regular file says about the object it holds.
ObjectInfo info_of_file(std::string key, const struct stat& facts);

// The names in the root that belong to the store itself.
inline constexpr char kTemporaryPrefix[] = ".tmp-";
inline constexpr char kKeepName[] = ".keep";
inline constexpr char kSweptName[] = ".swept";

// Removes temporary files last written before `limit`, in the whole tree.
void sweep_temporaries(int root_fd, TimePoint limit);

}  // namespace gruca::store
