#include "data/file_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "data/documents.h"

namespace gruca::data {

FileList list_files(const InputOptions& input) {
    FileList list;
    for (const std::filesystem::path& path : find_files(input.paths, input.suffixes)) {
        const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
        list.files.push_back({.path = path, .bytes = bytes});
        list.bytes += bytes;
    }
    if (list.files.empty()) throw Error(ErrorCode::not_found, "no input file is named");
    return list;
}

int worker_count(int asked, std::size_t files) {
    if (asked < 0 || asked > kWorkersMax) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the number of workers is not in 0..{}: {}", kWorkersMax, asked));
    }
    const int wanted =
        asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return static_cast<int>(std::min(static_cast<std::size_t>(wanted), files));
}

}  // namespace gruca::data
