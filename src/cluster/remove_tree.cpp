#include "cluster/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace gruca::cluster {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Its owner may have taken away from himself the right to read or change it.
UniqueFd open_directory(int parent, const char* name) {
    UniqueFd directory(::openat(parent, name, kDirectoryFlags));
    if (directory.is_open() || errno != EACCES) return directory;
    ::fchmodat(parent, name, S_IRWXU, 0);
    return UniqueFd(::openat(parent, name, kDirectoryFlags));
}

class Remover {
  public:
    Remover(UniqueFd top, const std::filesystem::path& tree, const std::stop_token& stop)
        : top_(std::move(top)), tree_(tree), stop_(stop) {
        ::fchmod(top_.get(), S_IRWXU);
    }

    void empty_top() {
        // What is moved up while the top is read may be missed by that reading.
        while (for_each_name(top_.get(), [&](const char* name) { remove(name); }) > 0) {
        }
    }

  private:
    template <class Visit>
    std::size_t for_each_name(int directory, Visit visit) const {
        const auto close = [](DIR* stream) { ::closedir(stream); };
        UniqueFd mine(::openat(directory, ".", kDirectoryFlags));
        const std::unique_ptr<DIR, decltype(close)> stream(
            mine.is_open() ? ::fdopendir(mine.get()) : nullptr, close);
        if (!stream) throw_errno("cannot list a directory of " + tree_.string());
        mine.release();  // The stream closes it.
        std::size_t count = 0;
        while (const dirent* entry = ::readdir(stream.get())) {
            const std::string_view name = entry->d_name;
            if (name == "." || name == "..") continue;
            if (stop_.stop_requested()) {
                throw Error(ErrorCode::cancelled, "the removal of " + tree_.string() + " waits");
            }
            visit(entry->d_name);
            ++count;
        }
        return count;
    }

    // False: a directory that is not empty.
    bool remove_simple(int directory, const char* name) const {
        if (::unlinkat(directory, name, 0) == 0 || errno == ENOENT) return true;
        if (errno == EISDIR) {
            if (::unlinkat(directory, name, AT_REMOVEDIR) == 0) return true;
            if (errno == ENOTEMPTY || errno == EEXIST) return false;
        }
        throw_errno("cannot remove " + std::string(name) + " of " + tree_.string());
    }

    // Something in the top.
    void remove(const char* name) {
        if (remove_simple(top_.get(), name)) return;
        const UniqueFd directory = open_directory(top_.get(), name);
        if (!directory.is_open()) {
            throw_errno("cannot open " + std::string(name) + " of " + tree_.string());
        }
        ::fchmod(directory.get(), S_IRWXU);
        for_each_name(directory.get(), [&](const char* inner) {
            if (!remove_simple(directory.get(), inner)) move_up(directory.get(), inner);
        });
        remove_simple(top_.get(), name);  // Else the next reading of the top comes by again.
    }

    void move_up(int directory, const char* name) {
        ::fchmodat(directory, name, S_IRWXU, 0);  // Where it lies is written in itself.
        for (;;) {
            const std::string free_name = std::to_string(moved_++);
            if (::renameat(directory, name, top_.get(), free_name.c_str()) == 0) return;
            if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) continue;  // Taken.
            throw_errno("cannot move " + std::string(name) + " of " + tree_.string());
        }
    }

    const UniqueFd top_;
    const std::filesystem::path& tree_;
    const std::stop_token& stop_;
    std::uint64_t moved_ = 0;
};

}  // namespace

void remove_tree(const std::filesystem::path& tree, const std::stop_token& stop) {
    UniqueFd top = open_directory(AT_FDCWD, tree.c_str());
    if (!top.is_open() && errno == ENOENT) return;
    if (!top.is_open()) throw_errno("cannot open " + tree.string());
    Remover(std::move(top), tree, stop).empty_top();
    if (::rmdir(tree.c_str()) != 0) throw_errno("cannot remove " + tree.string());
}

}  // namespace gruca::cluster
