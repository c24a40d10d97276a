// cluster/remove_tree.h
//
// Removes what a job has left, however wide and deep: a directory is emptied by moving the
// directories in it up to the top, so that no more than four descriptors are open and no path is
// long. std::filesystem::remove_all holds a descriptor a level, and a job may nest deeper than a
// service may open files. Nothing runs any more that could change the tree meanwhile.
//
// Pure functions of the file system.
#pragma once

#include <filesystem>
#include <stop_token>

namespace gruca::cluster {

// Links are removed and not followed. An absent tree is fine. Throws cancelled when `stop` is
// requested, or the error of what cannot be removed, with its name; the rest of the tree is then
// still there, in no particular shape, and the removal may be asked for again.
void remove_tree(const std::filesystem::path& tree, const std::stop_token& stop = {});

}  // namespace gruca::cluster
