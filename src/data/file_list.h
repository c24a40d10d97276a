// data/file_list.h
//
// The files of a data command with their sizes, and threads that work on them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/commands.h"

namespace gruca::data {

inline constexpr int kWorkersMax = 256;

struct InputFile {
    std::filesystem::path path;
    std::int64_t bytes = 0;  // On disk.
};

struct FileList {
    std::vector<InputFile> files;
    std::int64_t bytes = 0;
};

// Throws not_found when there is nothing, or something named does not exist.
FileList list_files(const InputOptions& input);

// How many threads work on `files` files when `asked` were asked for.
int worker_count(int asked, std::size_t files);

}  // namespace gruca::data
