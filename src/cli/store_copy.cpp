#include "cli/store_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <ostream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "net/url.h"

namespace gruca::cli {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 4u << 20;
constexpr std::uint64_t kProgressFromBytes = 64u << 20;  // Smaller copies are over at once.

// Removes what was written so far, unless it has become the file.
struct PartialFile {
    fs::path path;
    ~PartialFile() {
        if (!path.empty()) ::unlink(path.c_str());
    }
};

class Copier {
  public:
    Copier(Context& context, store::ObjectStore& objects)
        : context_(context), objects_(objects), piece_(kPieceBytes) {}

    void file_to_object(const fs::path& file, const std::string& key) {
        const UniqueFd fd = open_file(file, O_RDONLY);
        begin(file.string(), fs::file_size(file));
        const auto writer = objects_.begin_put(key, {});
        while (const std::size_t n = read_full(fd.get(), piece_)) {
            writer->write(std::span(piece_).first(n));
            advance(n);
        }
        writer->commit();
        end();
    }

    void object_to_file(const std::string& key, const fs::path& file) {
        if (file.has_parent_path()) fs::create_directories(file.parent_path());
        require_replaceable(file);
        const fs::path partial = file.string() + ".part-" + std::to_string(::getpid());
        PartialFile guard{partial};
        UniqueFd fd = open_file(partial, O_WRONLY | O_CREAT | O_TRUNC);
        read_object(key, [&](std::span<const std::byte> bytes) { write_all(fd.get(), bytes); });
        fd.reset();
        fs::rename(partial, file);
        guard.path.clear();
    }

    void object_to_object(const std::string& from, const std::string& to) {
        const auto writer = objects_.begin_put(to, {});
        read_object(from, [&](std::span<const std::byte> bytes) { writer->write(bytes); });
        writer->commit();
    }

    const CopyResult& result() const { return result_; }

  private:
    template <class Take>
    void read_object(const std::string& key, Take take) {
        const auto found = objects_.find(key);
        if (!found) throw Error(ErrorCode::not_found, "there is no such object: s3://" + key);
        begin("s3://" + key, found->bytes);
        std::uint64_t at = 0;
        while (at < found->bytes) {
            const std::size_t n = objects_.read(key, at, piece_);
            if (n == 0) break;
            take(std::span<const std::byte>(piece_).first(n));
            at += n;
            advance(n);
        }
        const auto after = objects_.find(key);
        if (at != found->bytes || !after || after->etag != found->etag) {
            throw Error(ErrorCode::unavailable,
                        "the object was replaced while it was read; try again: s3://" + key);
        }
        end();
    }

    void begin(const std::string& name, std::uint64_t bytes) {
        name_ = name;
        bytes_ = bytes;
        done_ = 0;
    }

    void advance(std::size_t bytes) {
        done_ += bytes;
        if (!context_.out_is_terminal || bytes_ < kProgressFromBytes) return;
        context_.err << "\r" << name_ << "  " << done_ * 100 / bytes_ << " %" << std::flush;
    }

    void end() {
        if (context_.out_is_terminal && bytes_ >= kProgressFromBytes) context_.err << "\n";
        result_.objects += 1;
        result_.bytes += done_;
    }

    Context& context_;
    store::ObjectStore& objects_;
    std::vector<std::byte> piece_;
    CopyResult result_;
    std::string name_;
    std::uint64_t bytes_ = 0;
    std::uint64_t done_ = 0;
};

bool is_in_store(const std::string& place) {
    return place.starts_with("s3://");
}

std::string last_name(const std::string& key) {
    return key.substr(key.rfind('/') + 1);
}

// "bucket/key" of a place in the store. A target that names no object gets `name` appended.
std::string key_of(const std::string& place, const std::string& name = "") {
    const net::S3Uri uri = net::parse_s3_uri(place);
    std::string key = uri.bucket + "/" + uri.key;
    if (!name.empty() && key.ends_with('/')) key += name;
    return key;
}

std::string prefix_of(const std::string& place) {
    std::string prefix = key_of(place);
    return prefix.ends_with('/') ? prefix : prefix + "/";
}

// A key comes from anyone; a file it names must lie below the target.
void require_file_name(const std::string& relative) {
    for (const std::string& segment : split(relative, '/')) {
        if (segment.empty() || segment == "." || segment == ".." ||
            segment.find('\0') != std::string::npos) {
            throw Error(ErrorCode::invalid_argument,
                        "the key cannot be a file's name; copy it alone, to a name of your own: " +
                            relative);
        }
    }
}

void copy_directory(Copier& copier, const fs::path& directory, const std::string& to) {
    const std::string prefix = prefix_of(to);
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        if (!entry.is_regular_file()) continue;
        copier.file_to_object(entry.path(),
                              prefix + fs::relative(entry.path(), directory).generic_string());
    }
}

void copy_prefix(Copier& copier, const store::ObjectStore& objects, const CopyRequest& request) {
    const std::string prefix = prefix_of(request.from);
    std::vector<std::string> keys;  // Before copying: the target may lie below the source.
    objects.for_each(prefix, [&](const store::ObjectInfo& object) { keys.push_back(object.key); });
    for (const std::string& key : keys) {
        const std::string relative = key.substr(prefix.size());
        if (is_in_store(request.to)) {
            copier.object_to_object(key, prefix_of(request.to) + relative);
        } else if (!relative.empty() && !relative.ends_with('/')) {  // Those are "directories".
            require_file_name(relative);
            copier.object_to_file(key, fs::path(request.to) / relative);
        }
    }
}

void copy_one(Copier& copier, const CopyRequest& request) {
    if (!is_in_store(request.from)) {
        const fs::path file = request.from;
        if (fs::is_directory(file)) {
            throw Error(ErrorCode::invalid_argument,
                        "a directory needs --recursive: " + request.from);
        }
        return copier.file_to_object(file, key_of(request.to, file.filename().string()));
    }
    const std::string key = key_of(request.from);
    const std::string name = last_name(key);
    if (is_in_store(request.to)) return copier.object_to_object(key, key_of(request.to, name));
    fs::path target = request.to;
    if (request.to.ends_with('/') || fs::is_directory(target)) {
        require_file_name(name);
        target /= name;
    }
    copier.object_to_file(key, target);
}

}  // namespace

CopyResult copy_objects(Context& context, store::ObjectStore& objects, const CopyRequest& request) {
    if (!is_in_store(request.from) && !is_in_store(request.to)) {
        throw Error(ErrorCode::invalid_argument, "one side must be in the store: s3://bucket/key");
    }
    Copier copier(context, objects);
    if (!request.recursive) {
        copy_one(copier, request);
    } else if (is_in_store(request.from)) {
        copy_prefix(copier, objects, request);
    } else {
        if (!fs::is_directory(request.from)) {
            throw Error(ErrorCode::not_found, "there is no such directory: " + request.from);
        }
        copy_directory(copier, request.from, request.to);
    }
    if (copier.result().objects == 0) {
        throw Error(ErrorCode::not_found, "nothing to copy below " + request.from);
    }
    return copier.result();
}

}  // namespace gruca::cli
