#include "store/local_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/boundary.h"
#include "base/check.h"
#include "base/durable_directories.h"
#include "base/error.h"
#include "base/random.h"
#include "store/local_directory.h"
#include "store/local_file.h"
#include "store/local_names.h"

namespace gruca::store {
namespace {

constexpr auto kTemporaryAgeMax = std::chrono::hours(24);
constexpr int kCreateAttemptsMax = 1000;

// Creates a file of the store's own in the directory, which is made, as often as it takes.
UniqueFd create_file(int root_fd, const std::vector<std::string>& directories,
                     const std::string& name, int flags, UniqueFd& directory) {
    for (int attempt = 0; attempt < kCreateAttemptsMax; ++attempt) {
        directory = make_directory(root_fd, directories);
        UniqueFd file(::openat(directory.get(), name.c_str(),
                               O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0644));
        if (file.is_open()) return file;
        if (errno != ENOENT) throw_errno("cannot create a file in the store");
    }
    throw Error(ErrorCode::unavailable, "a directory of the store is removed again and again");
}

// A file that goes with whoever writes it. Closed where the file system knows none.
UniqueFd create_unnamed_file(int root_fd, const std::vector<std::string>& directories,
                             UniqueFd& directory) {
    directory = make_directory(root_fd, directories);
    return UniqueFd(::openat(directory.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644));
}

class LocalWriter final : public ObjectWriter {
  public:
    LocalWriter(int root_fd, std::string key, PutOptions options)
        : root_fd_(root_fd), key_(std::move(key)), options_(options), path_(local_path_of(key_)) {
        file_ = create_unnamed_file(root_fd_, path_.directories, directory_);
        if (file_.is_open()) return;
        temporary_ = new_temporary();
        file_ = create_file(root_fd_, path_.directories, temporary_, O_EXCL, directory_);
    }

    ~LocalWriter() override {
        if (is_published_) return;
        if (!temporary_.empty()) ::unlinkat(directory_.get(), temporary_.c_str(), 0);
        run_guarded([&] { remove_empty_directories(root_fd_, path_.directories); });
    }

    void write(std::span<const std::byte> bytes) override {
        is_flushed_ = false;
        try {
            write_all(file_.get(), bytes);
        } catch (Error& error) {
            error.add_context("writing the object " + key_);
            throw;
        }
    }

    void append(const ObjectReader& from, std::uint64_t offset, std::uint64_t bytes) override {
        const std::uint64_t done =
            from.fd() < 0 ? 0 : copy_between_files(from.fd(), offset, bytes, file_.get());
        is_flushed_ = false;
        append_by_reading(*this, from, offset + done, bytes - done);
    }

    bool set_attributes(std::string_view attributes) override {
        is_flushed_ = false;
        return set_file_attributes(file_.get(), attributes);
    }

    void flush() override {
        stamp();
        if (::fsync(file_.get()) != 0) throw_errno("cannot sync the object " + key_);
        is_flushed_ = true;
    }

    PutOutcome commit() override {
        CHECK(file_.is_open(), "commit of {} called twice", key_);
        if (!is_flushed_) flush();
        if (temporary_.empty()) name_it();
        file_.reset();
        const PutOutcome outcome = publish();
        sync_directories(root_fd_, path_.directories);
        return outcome;
    }

  private:
    // The time of a file is as coarse as the system's clock tick, and a freed inode is used again:
    // chance in the last digits keeps apart what two quick puts of one size would make equal.
    void stamp() {
        struct stat facts {};
        if (::fstat(file_.get(), &facts) != 0) throw_errno("cannot look at the object " + key_);
        constexpr long kMillisecond = 1'000'000;
        const long chance = static_cast<long>(SystemRandom().next_u64() % kMillisecond);
        const long ns = facts.st_mtim.tv_nsec / kMillisecond * kMillisecond + chance;
        const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                   {.tv_sec = facts.st_mtim.tv_sec, .tv_nsec = ns}};
        if (::futimens(file_.get(), times) != 0) throw_errno("cannot stamp the object " + key_);
    }

    static std::string new_temporary() { return kTemporaryPrefix + SystemRandom().hex_id(16); }

    // Only a file with a name can replace another. Nothing kept the directory so far: it may have
    // been removed as empty.
    void name_it() {
        const std::string unnamed = "/proc/self/fd/" + std::to_string(file_.get());
        const std::string name = new_temporary();
        for (int attempt = 0; attempt < kCreateAttemptsMax; ++attempt) {
            if (::linkat(AT_FDCWD, unnamed.c_str(), directory_.get(), name.c_str(),
                         AT_SYMLINK_FOLLOW) == 0) {
                temporary_ = name;
                return;
            }
            if (errno != ENOENT) throw_errno("cannot name the object " + key_);
            directory_ = make_directory(root_fd_, path_.directories);
        }
        throw Error(ErrorCode::unavailable,
                    "a directory of the store is removed again and again; is /proc mounted?");
    }

    PutOutcome publish() {
        const int fd = directory_.get();
        const char* from = temporary_.c_str();
        const char* to = path_.file.c_str();
        bool is_linked = false;
        int failed = 0;
        if (!options_.only_if_absent) {
            failed = ::renameat(fd, from, fd, to);
        } else {
            failed = ::renameat2(fd, from, fd, to, RENAME_NOREPLACE);
            if (failed != 0 && errno == EINVAL) {  // A file system without it, such as NFS.
                failed = ::linkat(fd, from, fd, to, 0);
                is_linked = failed == 0;
            }
        }
        if (failed != 0 && errno == EEXIST && options_.only_if_absent) {
            return PutOutcome::precondition_failed;
        }
        if (failed != 0) throw_errno("cannot publish the object " + key_);
        if (is_linked) ::unlinkat(fd, from, 0);
        is_published_ = true;
        return PutOutcome::written;
    }

    const int root_fd_;
    const std::string key_;
    const PutOptions options_;
    const LocalPath path_;
    UniqueFd directory_;
    std::string temporary_;  // Empty as long as the file has no name.
    UniqueFd file_;
    bool is_flushed_ = false;
    bool is_published_ = false;
};

UniqueFd open_root(const std::filesystem::path& root) {
    create_directories_durably(root);
    return open_file(root, O_RDONLY | O_DIRECTORY);
}

// A store that may only be read is not swept, and is none the worse for it.
void sweep_once_a_day(int root_fd, TimePoint now) {
    struct stat facts {};
    const bool is_marked = ::fstatat(root_fd, kSweptName, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_marked && info_of_file({}, facts).modified > now - kTemporaryAgeMax) return;
    const UniqueFd marker(::openat(root_fd, kSweptName,
                                   O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
    if (!marker.is_open()) return;
    const std::int64_t ms = to_ms(now);
    const timespec when{.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000};
    const timespec times[2] = {when, when};
    if (::futimens(marker.get(), times) != 0) return;
    sweep_temporaries(root_fd, now - kTemporaryAgeMax);
}

}  // namespace

LocalStore::LocalStore(const std::filesystem::path& root, TimePoint now)
    : root_(std::filesystem::absolute(root)), root_fd_(open_root(root_)) {
    sweep_once_a_day(root_fd_.get(), now);
}

LocalStore::LocalStore(const std::filesystem::path& root) : LocalStore(root, SystemClock().now()) {}

std::filesystem::path LocalStore::directory_for(std::string_view prefix) {
    if (!prefix.empty()) require_valid_key(prefix);
    if (!prefix.empty() && !prefix.ends_with('/')) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("only a prefix that ends in '/' is a directory: {}", prefix));
    }
    const std::vector<std::string> directories = local_directories_of(prefix);
    UniqueFd directory;
    create_file(root_fd_.get(), directories, kKeepName, 0, directory);
    sync_directories(root_fd_.get(), directories);
    std::filesystem::path path = root_;
    for (const std::string& name : directories) path /= name;
    return path;
}

std::vector<LocalStore::TopDirectory> LocalStore::top_directories() const {
    std::vector<TopDirectory> found;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
        const LocalName name = read_local_name(entry.path().filename().string());
        struct statx facts = {};
        if (name.kind != LocalName::Kind::directory || !name.text.ends_with('/')) continue;
        if (::statx(AT_FDCWD, entry.path().c_str(), AT_SYMLINK_NOFOLLOW,
                    STATX_BTIME | STATX_MTIME | STATX_TYPE, &facts) != 0 ||
            !S_ISDIR(facts.stx_mode)) {
            continue;
        }
        const bool born = (facts.stx_mask & STATX_BTIME) != 0;
        const statx_timestamp& time = born ? facts.stx_btime : facts.stx_mtime;
        found.push_back({.name = name.text.substr(0, name.text.size() - 1),
                         .created = time_from_ms(time.tv_sec * 1000 + time.tv_nsec / 1'000'000)});
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return found;
}

bool LocalStore::has_directory(std::string_view prefix) const {
    return find_directory(root_fd_.get(), local_directories_of(prefix)).has_value();
}

bool LocalStore::remove_directory(std::string_view prefix) {
    if (!list({.prefix = std::string(prefix), .keys_max = 1}).objects.empty()) return false;
    const std::vector<std::string> directories = local_directories_of(prefix);
    CHECK(!directories.empty(), "the root is not a directory of the store");
    const std::span<const std::string> above = std::span(directories).first(directories.size() - 1);
    if (!remove_unused_directory(root_fd_.get(), directories)) return false;
    remove_empty_directories(root_fd_.get(), above);
    sync_directories(root_fd_.get(), above);
    return true;
}

std::optional<ObjectInfo> LocalStore::find(std::string_view key) const {
    require_valid_key(key);
    const LocalPath path = local_path_of(key);
    const std::optional<UniqueFd> directory = find_directory(root_fd_.get(), path.directories);
    if (!directory) return std::nullopt;
    return find_file(directory->get(), path.file, key);
}

std::size_t LocalStore::read(std::string_view key, std::uint64_t offset,
                             std::span<std::byte> into) const {
    const auto reader = open(key);
    if (reader) return reader->read(offset, into);
    throw Error(ErrorCode::not_found, fmt::format("no object has the key: {}", key));
}

std::unique_ptr<ObjectReader> LocalStore::open(std::string_view key) const {
    require_valid_key(key);
    const LocalPath path = local_path_of(key);
    const std::optional<UniqueFd> directory = find_directory(root_fd_.get(), path.directories);
    if (!directory) return nullptr;
    return open_object(directory->get(), path.file, key);
}

std::unique_ptr<ObjectWriter> LocalStore::begin_put(std::string_view key, PutOptions options) {
    require_valid_key(key);
    return std::make_unique<LocalWriter>(root_fd_.get(), std::string(key), options);
}

// What is absent may have been removed a moment ago, by one who has not synced it yet.
void LocalStore::remove(std::string_view key) {
    require_valid_key(key);
    const LocalPath path = local_path_of(key);
    {
        const std::optional<UniqueFd> directory = find_directory(root_fd_.get(), path.directories);
        if (!directory) return sync_directories(root_fd_.get(), path.directories);
        if (::unlinkat(directory->get(), path.file.c_str(), 0) != 0 && errno != ENOENT) {
            throw_errno(fmt::format("cannot remove the object {}", key));
        }
        if (::fsync(directory->get()) != 0) {
            throw_errno(fmt::format("cannot sync the removal of the object {}", key));
        }
    }
    remove_empty_directories(root_fd_.get(), path.directories);
}

}  // namespace gruca::store
