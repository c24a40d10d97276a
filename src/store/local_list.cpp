// Listing in key order: a walk down the tree that reads only directories in which a wanted key may
// lie, and holds no more names of each than keys are asked for.

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

#include "base/error.h"
#include "store/local_directory.h"
#include "store/local_file.h"
#include "store/local_names.h"
#include "store/local_store.h"

namespace gruca::store {
namespace {

struct Entry {
    std::string text;  // What it adds to the key.
    std::string name;
    std::optional<ObjectInfo> object;  // Nothing for a directory.

    bool operator<(const Entry& other) const { return text < other.text; }
};

struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

class Walk {
  public:
    Walk(int root_fd, const ListRequest& request) : root_fd_(root_fd), request_(request) {}

    ListPage run() {
        ListPage page;
        if (request_.keys_max == 0) return page;
        const std::size_t slash = request_.prefix.rfind('/');
        const std::size_t whole = slash == std::string::npos ? 0 : slash + 1;
        key_ = request_.prefix.substr(0, whole);
        directories_ = local_directories_of(key_);
        visit();
        page.truncated = found_.size() > request_.keys_max;
        if (page.truncated) found_.pop_back();
        page.objects = std::move(found_);
        return page;
    }

  private:
    bool is_full() const { return found_.size() > request_.keys_max; }

    void visit() {
        std::optional<std::string> cursor;
        for (bool more = true; more && !is_full();) {
            const std::size_t entries_max = request_.keys_max + 1 - found_.size();
            std::vector<Entry> entries = read_entries(cursor, entries_max);
            more = entries.size() == entries_max;
            if (more) cursor = entries.back().text;
            for (Entry& entry : entries) {
                if (is_full()) return;
                if (entry.object) {
                    found_.push_back(std::move(*entry.object));
                } else {
                    descend(entry);
                }
            }
        }
    }

    void descend(const Entry& entry) {
        directories_.push_back(entry.name);
        key_ += entry.text;
        visit();
        key_.resize(key_.size() - entry.text.size());
        directories_.pop_back();
    }

    // The smallest `entries_max` entries after `cursor` that are or may hold wanted objects.
    std::vector<Entry> read_entries(const std::optional<std::string>& cursor,
                                    std::size_t entries_max) const {
        std::optional<UniqueFd> directory = find_directory(root_fd_, directories_);
        if (!directory) return {};
        const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(directory->get()));
        if (stream == nullptr) throw_errno("cannot read a directory of the store");
        const int fd = directory->release();
        std::priority_queue<Entry> smallest;
        for (;;) {
            errno = 0;
            const dirent* found = ::readdir(stream.get());
            if (found == nullptr && errno != 0) throw_errno("cannot read a directory of the store");
            if (found == nullptr) break;
            LocalName name = read_local_name(found->d_name);
            if (name.kind == LocalName::Kind::not_ours || !is_wanted(name)) continue;
            if (cursor && name.text <= *cursor) continue;
            if (smallest.size() == entries_max && smallest.top().text <= name.text) continue;
            std::optional<Entry> entry = look_at(fd, std::move(name), found->d_name);
            if (!entry) continue;
            smallest.push(std::move(*entry));
            if (smallest.size() > entries_max) smallest.pop();
        }
        std::vector<Entry> entries(smallest.size());
        for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
            *entry = smallest.top();
            smallest.pop();
        }
        add_attributes(fd, entries);
        return entries;
    }

    // Only of those that are listed: each costs opening its file. One that is gone since is left
    // as it was found.
    static void add_attributes(int fd, std::vector<Entry>& entries) {
        for (Entry& entry : entries) {
            if (!entry.object) continue;
            if (auto found = find_file(fd, entry.name, entry.object->key)) entry.object = *found;
        }
    }

    bool is_wanted(const LocalName& name) const {
        const std::string key = key_ + name.text;
        if (key.size() > kKeyBytesMax) return false;
        if (name.kind == LocalName::Kind::object) {
            return key > request_.after && key.starts_with(request_.prefix);
        }
        const bool may_match = key.starts_with(request_.prefix) || request_.prefix.starts_with(key);
        return may_match && (key > request_.after || request_.after.starts_with(key));
    }

    std::optional<Entry> look_at(int fd, LocalName name, const char* file) const {
        struct stat facts {};
        if (::fstatat(fd, file, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno != ENOENT) throw_errno("cannot look at a file of the store");
            return std::nullopt;  // Removed since its name was read.
        }
        Entry entry{.text = std::move(name.text), .name = file, .object = {}};
        if (name.kind == LocalName::Kind::directory) {
            if (!S_ISDIR(facts.st_mode)) return std::nullopt;
        } else {
            if (!S_ISREG(facts.st_mode)) return std::nullopt;
            entry.object = info_of_file(key_ + entry.text, facts);
        }
        return entry;
    }

    const int root_fd_;
    const ListRequest& request_;
    std::vector<std::string> directories_;  // Where the walk is, and
    std::string key_;                       // what keys there begin with.
    std::vector<ObjectInfo> found_;         // One more than asked for, to know whether there is.
};

}  // namespace

ListPage LocalStore::list(const ListRequest& request) const {
    return Walk(root_fd_.get(), request).run();
}

}  // namespace gruca::store
