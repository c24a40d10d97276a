// Listing in key order: a walk down the tree that reads only directories in which a wanted key may
// lie, and holds no more names of each than keys are asked for.

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
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

class Walk {
  public:
    Walk(int root_fd, const ListRequest& request) : root_fd_(root_fd), request_(request) {
        const std::size_t slash = request_.prefix.rfind('/');
        const std::size_t whole = slash == std::string::npos ? 0 : slash + 1;
        key_ = request_.prefix.substr(0, whole);
        directories_ = local_directories_of(key_);
    }

    ListPage run() {
        if (request_.keys_max == 0) return {};
        visit();
        page_.truncated = count() > request_.keys_max;
        if (page_.truncated && ended_with_prefix_) page_.prefixes.pop_back();
        if (page_.truncated && !ended_with_prefix_) page_.objects.pop_back();
        return std::move(page_);
    }

  private:
    std::size_t count() const { return page_.objects.size() + page_.prefixes.size(); }
    bool is_full() const { return count() > request_.keys_max; }

    void visit() {
        std::optional<std::string> cursor;
        for (bool more = true; more && !is_full();) {
            const std::size_t entries_max = request_.keys_max + 1 - count();
            std::vector<Entry> entries = read_entries(cursor, entries_max);
            more = entries.size() == entries_max;
            if (more) cursor = entries.back().text;
            for (Entry& entry : entries) {
                if (is_full()) return;
                if (entry.object) {
                    page_.objects.push_back(std::move(*entry.object));
                    ended_with_prefix_ = false;
                } else if (request_.rolls_up && entry.text.ends_with('/')) {
                    roll_up(entry);
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

    void roll_up(const Entry& entry) {
        const std::string prefix = key_ + entry.text;
        const ListRequest below{.prefix = prefix, .after = request_.after, .keys_max = 1};
        if (!Walk(root_fd_, below).finds_any()) return;
        page_.prefixes.push_back(prefix);
        ended_with_prefix_ = true;
    }

    // Right in the directory any object will do, where a page would have to know the smallest.
    bool finds_any() {
        if (holds_object()) return true;
        visit();
        return count() > 0;
    }

    bool holds_object() const {
        std::optional<UniqueFd> directory = find_directory(root_fd_, directories_);
        if (!directory) return false;
        DirectoryNames names(std::move(*directory));
        while (const char* found = names.next()) {
            LocalName name = read_local_name(found);
            const bool may_be = name.kind == LocalName::Kind::object && is_wanted(name);
            if (may_be && look_at(names.fd(), std::move(name), found)) return true;
        }
        return false;
    }

    // The smallest `entries_max` entries after `cursor` that are or may hold wanted objects.
    std::vector<Entry> read_entries(const std::optional<std::string>& cursor,
                                    std::size_t entries_max) const {
        std::optional<UniqueFd> directory = find_directory(root_fd_, directories_);
        if (!directory) return {};
        DirectoryNames names(std::move(*directory));
        std::priority_queue<Entry> smallest;
        while (const char* found = names.next()) {
            LocalName name = read_local_name(found);
            if (name.kind == LocalName::Kind::not_ours || !is_wanted(name)) continue;
            if (cursor && name.text <= *cursor) continue;
            if (smallest.size() == entries_max && smallest.top().text <= name.text) continue;
            std::optional<Entry> entry = look_at(names.fd(), std::move(name), found);
            if (!entry) continue;
            smallest.push(std::move(*entry));
            if (smallest.size() > entries_max) smallest.pop();
        }
        std::vector<Entry> entries(smallest.size());
        for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
            *entry = smallest.top();
            smallest.pop();
        }
        add_attributes(names.fd(), entries);
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
    ListPage page_;                         // One more than asked for, to know whether there is.
    bool ended_with_prefix_ = false;
};

}  // namespace

ListPage LocalStore::list(const ListRequest& request) const {
    return Walk(root_fd_.get(), request).run();
}

}  // namespace gruca::store
