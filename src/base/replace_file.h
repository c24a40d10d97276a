// base/replace_file.h
//
// For files that mean nothing after the machine has stopped: process ids, what a running node is
// told. A reader sees the old content or the new one whenever the writer dies, but nothing waits
// for the disk. After a power cut the file may be there and empty; what must not be is written by
// write_file_atomic.
#pragma once

#include <filesystem>
#include <string_view>

namespace gruca {

void replace_file(const std::filesystem::path& path, std::string_view content,
                  unsigned mode = 0644);

}  // namespace gruca
