#include "agent/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace gruca::agent {
namespace {

// Only names the thing: opening a device or a pipe for reading could already do something.
UniqueFd name_beneath(int root, const std::string& path) {
    open_how how = {};
    how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
    // Without links on the way, RESOLVE_NO_SYMLINKS still lets O_PATH name a link at the end.
    return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

UniqueFd open_named(const UniqueFd& named, int flags) {
    const std::string path = "/proc/self/fd/" + std::to_string(named.get());
    return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC));
}

// Tells `visit` of each entry until it returns false.
void list(int root, const std::function<bool(const dirent&)>& visit) {
    const auto close = [](DIR* stream) { ::closedir(stream); };
    UniqueFd directory(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, decltype(close)> stream(
        directory.is_open() ? ::fdopendir(directory.get()) : nullptr, close);
    if (!stream) throw_errno("cannot list a directory of the job");
    directory.release();  // The stream closes it.
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != ".." && !visit(*entry)) return;
    }
}

std::vector<std::string> names_in(int directory) {
    std::vector<std::string> names;
    list(directory, [&](const dirent& entry) {
        names.emplace_back(entry.d_name);
        return true;
    });
    std::sort(names.begin(), names.end());
    return names;
}

std::string target_of(const UniqueFd& link) {
    std::string target(4096, '\0');
    const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
    if (size < 0) throw_errno("cannot read a link of the job");
    target.resize(static_cast<std::size_t>(size));
    return target;
}

void walk(int root, const std::string& prefix, int depth,
          const std::function<void(const TreeEntry&)>& visit) {
    if (depth > kTreeDepthMax) {
        throw Error(ErrorCode::invalid_argument, "directories are nested deeper than " +
                                                     std::to_string(kTreeDepthMax) + ": " +
                                                     prefix.substr(0, 100) + "…");
    }
    for (const std::string& name : names_in(root)) {
        const UniqueFd named = name_beneath(root, name);
        TreeEntry entry{.path = prefix + name};
        if (!named.is_open() && errno == ENOENT) continue;  // Just gone.
        if (!named.is_open() || ::fstat(named.get(), &entry.facts) != 0) {
            throw_errno("cannot look at a file of the job: " + entry.path);
        }
        if (S_ISDIR(entry.facts.st_mode)) {
            entry.kind = TreeEntry::Kind::directory;
            visit(entry);
            walk(named.get(), entry.path + "/", depth + 1, visit);
        } else if (S_ISLNK(entry.facts.st_mode)) {
            entry.kind = TreeEntry::Kind::link;
            entry.target = target_of(named);
            visit(entry);
        } else if (S_ISREG(entry.facts.st_mode)) {
            const UniqueFd file = open_named(named, O_RDONLY);
            if (!file.is_open()) throw_errno("cannot read a file of the job: " + entry.path);
            entry.fd = file.get();
            visit(entry);
        } else {
            log_warning("passed over, neither file nor directory nor link: {}", entry.path);
        }
    }
}

}  // namespace

std::optional<UniqueFd> find_file_beneath(int root, const std::string& path) {
    const UniqueFd named = name_beneath(root, path);
    struct stat facts = {};
    if (!named.is_open() || ::fstat(named.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return std::nullopt;
    }
    UniqueFd file = open_named(named, O_RDONLY);
    if (!file.is_open()) throw_errno("cannot read a file of the job: " + path);
    return file;
}

std::optional<UniqueFd> find_directory_beneath(int root, const std::string& path) {
    const UniqueFd named = name_beneath(root, path);
    struct stat facts = {};
    if (!named.is_open() || ::fstat(named.get(), &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        return std::nullopt;
    }
    UniqueFd directory(::openat(named.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open()) throw_errno("cannot open a directory of the job: " + path);
    return directory;
}

bool is_empty_beneath(int root) {
    bool empty = true;
    list(root, [&](const dirent& entry) {
        const auto type = entry.d_type;
        empty = type == DT_FIFO || type == DT_SOCK || type == DT_CHR || type == DT_BLK;
        return empty;
    });
    return empty;
}

void walk_beneath(int root, const std::function<void(const TreeEntry&)>& visit) {
    walk(root, "", 0, visit);
}

}  // namespace gruca::agent
