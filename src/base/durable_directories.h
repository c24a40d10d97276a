// base/durable_directories.h
//
// Directories that a power cut does not take away with what lies in them.
//
// Thread-safe.
#pragma once

#include <filesystem>

namespace gruca {

// Makes the directory and what is missing above it, and syncs where each of them is named.
void create_directories_durably(const std::filesystem::path& directory);

}  // namespace gruca
