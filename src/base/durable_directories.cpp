#include "base/durable_directories.h"

#include <cerrno>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace gruca {

void create_directories_durably(const std::filesystem::path& directory) {
    std::error_code failure;
    std::vector<std::filesystem::path> missing;
    for (std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
         path.has_relative_path() && !std::filesystem::exists(path, failure);
         path = path.parent_path()) {
        missing.push_back(path);
    }
    std::filesystem::create_directories(directory, failure);
    if (failure) {
        errno = failure.value();
        throw_errno("cannot make the directory " + directory.string());
    }
    for (const std::filesystem::path& path : missing) sync_directory(path.parent_path());
}

}  // namespace gruca
