#include "agent/outputs.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "agent/beneath.h"
#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

constexpr std::size_t kPieceBytes = 256u << 10;
// Weights hardly compress: more effort would cost minutes and save nothing.
constexpr const char* kGzipLevel = "1";

constexpr unsigned kModeMask = 0777;  // Not setuid, setgid, sticky.

void require_going(const std::stop_token& stop) {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "the upload was stopped");
}

class Archive final : public OutputSink {
  public:
    Archive(store::ObjectStore& store, const std::string& key, Compression compression)
        : object_(store.begin_put(key, {})), archive_(::archive_write_new()), piece_(kPieceBytes) {
        if (archive_ == nullptr) throw Error(ErrorCode::resource_exhausted, "no memory to archive");
        require(::archive_write_set_format_gnutar(archive_));
        if (compression == Compression::gzip) {
            require(::archive_write_add_filter_gzip(archive_));
            require(::archive_write_set_filter_option(archive_, "gzip", "compression-level",
                                                      kGzipLevel));
            // The same tree gives the same bytes, whenever it is archived.
            require(::archive_write_set_filter_option(archive_, "gzip", "timestamp", nullptr));
        }
        require(::archive_write_set_bytes_per_block(archive_, kPieceBytes));
        require(::archive_write_set_bytes_in_last_block(archive_, 1));
        require(::archive_write_open(archive_, this, nullptr, &Archive::write_piece, nullptr));
    }
    ~Archive() override { ::archive_write_free(archive_); }

    void add(const OutputEntry& entry, const ReadNext& read) override {
        archive_entry* header = ::archive_entry_new();
        ::archive_entry_set_pathname(header, entry.path.c_str());
        ::archive_entry_set_mtime(header, entry.modified_s, 0);
        ::archive_entry_set_perm(header, entry.mode & kModeMask);
        switch (entry.kind) {
            case OutputEntry::Kind::directory:
                ::archive_entry_set_filetype(header, AE_IFDIR);
                break;
            case OutputEntry::Kind::link:
                ::archive_entry_set_filetype(header, AE_IFLNK);
                ::archive_entry_set_symlink(header, entry.target.c_str());
                break;
            case OutputEntry::Kind::file:
                ::archive_entry_set_filetype(header, AE_IFREG);
                ::archive_entry_set_size(header, static_cast<la_int64_t>(entry.bytes));
                break;
        }
        const int outcome = ::archive_write_header(archive_, header);
        ::archive_entry_free(header);
        require(outcome);
        if (entry.kind == OutputEntry::Kind::file) add_content(entry, read);
    }

    void finish() override {
        require(::archive_write_close(archive_));
        object_->commit();
    }

  private:
    void add_content(const OutputEntry& entry, const ReadNext& read) {
        for (std::uint64_t left = entry.bytes; left > 0;) {
            const std::size_t got = read(std::span(piece_).first(
                static_cast<std::size_t>(std::min<std::uint64_t>(left, piece_.size()))));
            if (got == 0) {
                throw Error(ErrorCode::data_loss,
                            "a file became shorter while it was archived: " + entry.path);
            }
            if (::archive_write_data(archive_, piece_.data(), got) < 0) require(ARCHIVE_FATAL);
            left -= got;
        }
    }

    // Called by libarchive, which knows no exceptions: a failure waits in failure_ for require().
    static la_ssize_t write_piece(archive*, void* self, const void* bytes, std::size_t size) {
        Archive& mine = *static_cast<Archive*>(self);
        if (mine.failure_) return -1;
        mine.failure_ = run_guarded([&] {
            mine.object_->write({static_cast<const std::byte*>(bytes), size});
        });
        return mine.failure_ ? -1 : static_cast<la_ssize_t>(size);
    }

    void require(int outcome) {
        if (outcome >= ARCHIVE_WARN) return;
        if (failure_) throw *failure_;
        const char* why = ::archive_error_string(archive_);
        throw Error(ErrorCode::internal,
                    std::string("cannot archive: ") + (why != nullptr ? why : "no reason given"));
    }

    const std::unique_ptr<store::ObjectWriter> object_;
    archive* const archive_;
    std::vector<std::byte> piece_;
    std::optional<Error> failure_;
};

class PlainObjects final : public OutputSink {
  public:
    PlainObjects(store::ObjectStore& store, std::string prefix)
        : store_(store), prefix_(std::move(prefix)), piece_(kPieceBytes) {}

    void add(const OutputEntry& entry, const ReadNext& read) override {
        if (entry.kind == OutputEntry::Kind::link) {
            log_warning("a link has no object in the store: {}", entry.path);
        }
        if (entry.kind != OutputEntry::Kind::file) return;
        const std::unique_ptr<store::ObjectWriter> object =
            store_.begin_put(prefix_ + entry.path, {});
        while (const std::size_t got = read(piece_)) object->write(std::span(piece_).first(got));
        object->commit();
    }
    void finish() override {}

  private:
    store::ObjectStore& store_;
    const std::string prefix_;
    std::vector<std::byte> piece_;
};

OutputEntry entry_of(const TreeEntry& found) {
    OutputEntry entry{.path = found.path,
                      .kind = OutputEntry::Kind::file,
                      .bytes = 0,
                      .mode = found.facts.st_mode,
                      .modified_s = found.facts.st_mtim.tv_sec,
                      .target = found.target};
    switch (found.kind) {
        case TreeEntry::Kind::directory:
            entry.kind = OutputEntry::Kind::directory;
            break;
        case TreeEntry::Kind::link:
            entry.kind = OutputEntry::Kind::link;
            break;
        case TreeEntry::Kind::file:
            entry.bytes = static_cast<std::uint64_t>(found.facts.st_size);
            break;
    }
    return entry;
}

// Whether a path of an archive names something in the archive's own tree.
bool is_beneath(const std::string& path) {
    const std::vector<std::string> parts = split(path, '/');
    return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
        return part.empty() || part == "." || part == "..";
    });
}

// Reads an archive that lies in a store. The job may have put another one in its place: nothing is
// believed that this program would not have written.
class StoredArchive {
  public:
    StoredArchive(const store::ObjectStore& store, std::string key)
        : store_(store), key_(std::move(key)), archive_(::archive_read_new()), piece_(kPieceBytes) {
        if (archive_ == nullptr) throw Error(ErrorCode::resource_exhausted, "no memory to unpack");
        if (const auto info = store.find(key_)) bytes_ = info->bytes;
        ::archive_read_support_format_tar(archive_);
        // An archive without entries is two blocks of zeros, which libarchive calls empty.
        ::archive_read_support_format_empty(archive_);
        require(::archive_read_open(archive_, this, nullptr, &StoredArchive::read_piece, nullptr));
    }
    ~StoredArchive() { ::archive_read_free(archive_); }
    StoredArchive(const StoredArchive&) = delete;
    StoredArchive& operator=(const StoredArchive&) = delete;

    std::optional<OutputEntry> next() {
        archive_entry* header = nullptr;
        const int outcome = ::archive_read_next_header(archive_, &header);
        if (outcome == ARCHIVE_EOF) return std::nullopt;
        require(outcome);
        OutputEntry entry{.path = text_or_empty(::archive_entry_pathname(header)),
                          .kind = kind_of(header),
                          .bytes = static_cast<std::uint64_t>(::archive_entry_size(header)),
                          .mode = ::archive_entry_perm(header) & kModeMask,
                          .modified_s = ::archive_entry_mtime(header),
                          .target = text_or_empty(::archive_entry_symlink(header))};
        if (entry.path.ends_with('/')) entry.path.pop_back();
        if (!is_beneath(entry.path)) refuse("it holds a path that is not in its tree");
        // A hole can claim any size; what was archived here has none.
        if (entry.bytes > bytes_) refuse("a file in it is larger than all of it: " + entry.path);
        return entry;
    }

    std::size_t read(std::span<std::byte> into) {
        const la_ssize_t got = ::archive_read_data(archive_, into.data(), into.size());
        if (got < 0) require(ARCHIVE_FATAL);
        return static_cast<std::size_t>(got);
    }

  private:
    static std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

    [[noreturn]] void refuse(const std::string& why) const {
        throw Error(ErrorCode::data_loss, "not an archive of this program, " + why + ": " + key_);
    }

    OutputEntry::Kind kind_of(archive_entry* header) const {
        const bool is_hard_link = ::archive_entry_hardlink(header) != nullptr;
        switch (is_hard_link ? 0 : ::archive_entry_filetype(header)) {
            case AE_IFDIR:
                return OutputEntry::Kind::directory;
            case AE_IFLNK:
                return OutputEntry::Kind::link;
            case AE_IFREG:
                return OutputEntry::Kind::file;
            default:
                refuse("it holds what is neither file nor directory nor link");
        }
    }

    static la_ssize_t read_piece(archive*, void* self, const void** bytes) {
        StoredArchive& mine = *static_cast<StoredArchive*>(self);
        std::size_t got = 0;
        mine.failure_ =
            run_guarded([&] { got = mine.store_.read(mine.key_, mine.offset_, mine.piece_); });
        mine.offset_ += got;
        *bytes = mine.piece_.data();
        return mine.failure_ ? -1 : static_cast<la_ssize_t>(got);
    }

    void require(int outcome) {
        if (outcome >= ARCHIVE_WARN) return;
        if (failure_) throw *failure_;
        const char* why = ::archive_error_string(archive_);
        throw Error(ErrorCode::data_loss, "cannot read the archive " + key_ + ": " +
                                              (why != nullptr ? why : "no reason given"));
    }

    const store::ObjectStore& store_;
    const std::string key_;
    archive* const archive_;
    std::vector<std::byte> piece_;
    std::uint64_t bytes_ = 0;  // Of the whole archive.
    std::uint64_t offset_ = 0;
    std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<OutputSink> make_archive(store::ObjectStore& store, const std::string& key,
                                         Compression compression) {
    return std::make_unique<Archive>(store, key, compression);
}

std::unique_ptr<OutputSink> make_plain_objects(store::ObjectStore& store,
                                               const std::string& prefix) {
    return std::make_unique<PlainObjects>(store, prefix);
}

void FirstWins::add(const OutputEntry& entry, const ReadNext& read) {
    if (seen_.insert(entry.path).second) {
        sink_->add(entry, read);
    } else if (entry.kind != OutputEntry::Kind::directory) {
        log_warning("left out, an earlier host wrote the same name: {}", entry.path);
    }
}

void add_tree(int root, OutputSink& sink, const std::stop_token& stop) {
    walk_beneath(root, [&](const TreeEntry& found) {
        require_going(stop);
        sink.add(entry_of(found), [&](std::span<std::byte> into) {
            require_going(stop);
            return read_full(found.fd, into);
        });
    });
}

void add_archive(const store::ObjectStore& store, const std::string& key, OutputSink& sink,
                 const std::stop_token& stop) {
    StoredArchive archive(store, key);
    while (const std::optional<OutputEntry> entry = archive.next()) {
        require_going(stop);
        sink.add(*entry, [&](std::span<std::byte> into) {
            require_going(stop);
            return archive.read(into);
        });
    }
}

}  // namespace gruca::agent
