// store/local_names.h
//
// How LocalStore spells keys as paths, and reads them back. Pure; docs/formats/local-store.md is
// the same in prose.
//
//   a segment before a '/'      is a directory  <name>.d
//   the last segment            is a file       <name>
//   a segment too long for one  goes on inside  <name>.more
//
// A name that begins with '.' belongs to the store itself and is never part of a key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gruca::store {

struct LocalPath {
    std::vector<std::string> directories;  // From the root down.
    std::string file;
};

// `key` must be a valid key.
LocalPath local_path_of(std::string_view key);

// `prefix` is empty or ends in '/'.
std::vector<std::string> local_directories_of(std::string_view prefix);

// What a directory entry adds to the key that its directory stands for. In byte order of `text`,
// the entries of one directory are in byte order of the keys below them.
struct LocalName {
    enum class Kind { object, directory, not_ours } kind = Kind::not_ours;
    std::string text = {};  // "a" for the file a and for a.more, "a/" for a.d.
};

LocalName read_local_name(std::string_view name);

}  // namespace gruca::store
