#include "base/temporaries.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "base/error.h"

namespace gruca {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".gruca-";  // A user's own "credentials.backup" is not meant.
constexpr std::string_view kChosen = "XXXXXX";

}  // namespace

Temporary make_temporary(const fs::path& beside) {
    std::string path = beside.string();
    path.append(kMark).append(kChosen);
    UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
    if (!fd.is_open()) throw_errno("cannot create a file beside " + beside.string());
    ::flock(fd.get(), LOCK_EX);
    return {.fd = std::move(fd), .path = std::move(path)};
}

void sweep_temporaries(const fs::path& path) {
    const fs::path directory = path.has_parent_path() ? path.parent_path() : ".";
    const std::string begin = path.filename().string().append(kMark);
    std::vector<fs::path> found;
    std::error_code failure;
    for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        const std::string name = entry->path().filename().string();
        if (name.size() != begin.size() + kChosen.size() || !name.starts_with(begin)) continue;
        found.push_back(entry->path());
    }
    for (const fs::path& temporary : found) {
        const UniqueFd fd(::open(temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        if (fd.is_open() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(temporary.c_str());
    }
}

}  // namespace gruca
