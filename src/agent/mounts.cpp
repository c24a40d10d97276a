#include "agent/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

struct Entry {
    std::string name;
    std::optional<std::string> link = {};  // A symbolic link and where it points.
    bool is_directory = false;
    UniqueFd tree = UniqueFd();
};

UniqueFd open_tree_at(const std::string& path) {
    return UniqueFd(::open_tree(AT_FDCWD, path.c_str(),
                                static_cast<unsigned>(OPEN_TREE_CLONE) | OPEN_TREE_CLOEXEC |
                                    static_cast<unsigned>(AT_RECURSIVE)));
}

// Editors put a mark before a name as well: ".credentials.swp", "#credentials#".
bool is_version_of(const std::string& file, const std::string& name) {
    constexpr const char* kMarks = ".#~";
    const std::size_t bare = std::min(name.find_first_not_of(kMarks), name.size());
    return name.starts_with(file) || std::string_view(name).substr(bare).starts_with(file);
}

std::vector<Entry> entries_of(const fs::path& directory, const std::string& without) {
    std::vector<Entry> entries;
    for (const auto& found : fs::directory_iterator(directory)) {
        if (entries.size() == kEntriesMax) {
            throw Error(ErrorCode::invalid_argument,
                        "too many entries to make a private copy of " + directory.string());
        }
        Entry entry{.name = found.path().filename().string()};
        std::error_code vanished;
        if (!without.empty() && is_version_of(without, entry.name) &&
            !found.is_directory(vanished)) {
            continue;
        }
        if (found.is_symlink(vanished)) {
            entry.link = fs::read_symlink(found.path(), vanished).string();
            if (vanished) continue;
        } else {
            entry.is_directory = found.is_directory(vanished);
            entry.tree = open_tree_at(found.path().string());
            if (!entry.tree.is_open() && errno == ENOENT) continue;
            if (!entry.tree.is_open()) throw_errno("cannot copy " + found.path().string());
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

void make_file(const fs::path& path) {
    open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

}  // namespace

UniqueFd copy_of_mount(const std::string& path) {
    UniqueFd tree = open_tree_at(path);
    if (!tree.is_open()) throw_errno("cannot copy the mount of " + path);
    return tree;
}

void attach(const UniqueFd& tree, const std::string& target) {
    if (::move_mount(tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
        throw_errno("cannot mount over " + target);
    }
}

void set_mount_attributes(int directory, const char* path, std::uint64_t attributes) {
    mount_attr wanted = {};
    wanted.attr_set = attributes;
    const unsigned flags = static_cast<unsigned>(AT_RECURSIVE) |
                           (*path == '\0' ? static_cast<unsigned>(AT_EMPTY_PATH) : 0u);
    if (::mount_setattr(directory, path, flags, &wanted, sizeof wanted) != 0) {
        throw_errno(std::string("cannot change the attributes of the mount ") + path);
    }
}

void mount_new(const char* kind, const std::string& target, unsigned long flags,
               const char* options) {
    if (::mount(kind, target.c_str(), kind, flags, options) != 0) {
        throw_errno(std::string("cannot mount a new ") + kind + " at " + target);
    }
}

void replace_directory(const fs::path& directory, const std::string& without,
                       const fs::path& with) {
    struct stat facts = {};
    if (::stat(directory.c_str(), &facts) != 0) throw_errno("cannot look at " + directory.string());
    const std::vector<Entry> entries = entries_of(directory, without);
    mount_new("tmpfs", directory.string(), MS_NOSUID | MS_NODEV, "mode=755");
    ::chmod(directory.c_str(), facts.st_mode & 07777u);
    for (const Entry& entry : entries) {
        const fs::path path = directory / entry.name;
        if (entry.link) {
            fs::create_symlink(*entry.link, path);
        } else if (entry.is_directory) {
            fs::create_directory(path);
        } else {
            make_file(path);
        }
    }
    if (!with.empty()) fs::create_directories(directory / with);
    set_mount_attributes(AT_FDCWD, directory.c_str(), MOUNT_ATTR_RDONLY);
    for (const Entry& entry : entries) {
        if (!entry.link) attach(entry.tree, (directory / entry.name).string());
    }
}

void hide(const fs::path& path) {
    std::error_code failure;
    if (fs::is_directory(path, failure)) {
        mount_new("tmpfs", path.string(), MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                  "size=4k,mode=555");
        return;
    }
    const fs::path parent = path.parent_path();
    if (parent == parent.root_path() || !fs::is_directory(parent, failure)) return;
    replace_directory(parent, path.filename().string());
}

}  // namespace gruca::agent
