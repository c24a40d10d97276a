#include "agent/inputs.h"

#include <fcntl.h>

#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "net/url.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 4u << 20;
constexpr std::size_t kNameBytesMax = 255;  // Of one part of a path.

[[noreturn]] void throw_bad_key(const std::string& key, const std::string& what,
                                const std::string& why) {
    throw Error(ErrorCode::invalid_argument,
                "an object of " + what + " cannot become a file, " + why + ": s3://" + key);
}

void require_file_name(const std::string& path, const std::string& key, const std::string& what) {
    if (path.find('\0') != std::string::npos) throw_bad_key(key, what, "its key has a NUL");
    for (const std::string& part : split(path, '/')) {
        if (part.empty() || part == "." || part == "..") {
            throw_bad_key(key, what, "its key has a part '" + part + "'");
        }
        if (part.size() > kNameBytesMax) {
            throw_bad_key(key, what, "a part of its key has more than 255 bytes");
        }
    }
}

// Keys "a" and "a/b" are two objects, but no file system has both as files.
void require_no_clash(const std::vector<InputFile>& files, const std::string& what) {
    std::set<std::string> paths;
    for (const InputFile& file : files) paths.insert(file.path);
    for (const InputFile& file : files) {
        for (std::size_t slash = file.path.find('/'); slash != std::string::npos;
             slash = file.path.find('/', slash + 1)) {
            if (!paths.contains(file.path.substr(0, slash))) continue;
            throw_bad_key(
                file.object.key, what,
                "another object already is the file '" + file.path.substr(0, slash) + "'");
        }
    }
}

void require_space(std::uint64_t needed, const fs::path& directory) {
    const std::uint64_t available = fs::space(directory).available;
    if (needed <= available) return;
    throw Error(ErrorCode::resource_exhausted,
                "not enough disk space for the input data: needed " + human_bytes(needed) +
                    ", free " + human_bytes(available) + " in " + directory.string());
}

void download_file(const store::ObjectStore& store, const InputFile& input, const fs::path& target,
                   const std::stop_token& stop) {
    fs::create_directories(target.parent_path());
    const UniqueFd file = open_file(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    std::vector<std::byte> piece(static_cast<std::size_t>(
        std::min<std::uint64_t>(kPieceBytes, std::max<std::uint64_t>(input.object.bytes, 1))));
    std::uint64_t offset = 0;
    for (;;) {
        if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "the download was stopped");
        const std::size_t got = store.read(input.object.key, offset, piece);
        write_all(file.get(), std::span(piece).first(got));
        offset += got;
        if (got < piece.size()) break;
    }
    if (offset != input.object.bytes) {
        throw Error(ErrorCode::unavailable,
                    "an object changed while it was downloaded: s3://" + input.object.key);
    }
}

}  // namespace

std::vector<InputFile> files_under(const store::ObjectStore& store, const std::string& prefix,
                                   const std::string& what) {
    const std::size_t name_begin = prefix.rfind('/') + 1;
    std::vector<InputFile> files;
    store.for_each(prefix, [&](const store::ObjectInfo& object) {
        if (object.key.ends_with('/')) return;
        files.push_back({.object = object, .path = object.key.substr(name_begin)});
    });
    for (const InputFile& file : files) require_file_name(file.path, file.object.key, what);
    require_no_clash(files, what);
    return files;
}

std::vector<InputFile> files_of_channel(const store::ObjectStore& store,
                                        const spec::TaskChannel& channel, NodeRank rank) {
    const net::S3Uri uri = net::parse_s3_uri(channel.s3_uri);
    std::vector<InputFile> all =
        files_under(store, uri.bucket + "/" + uri.key, "channel '" + channel.name + "'");
    if (all.empty()) {
        throw Error(ErrorCode::not_found, "no data: channel '" + channel.name +
                                              "' has no object under its S3Uri " + channel.s3_uri +
                                              "; put data there, or correct the URI");
    }
    if (channel.distribution != "ShardedByS3Key") return all;
    std::vector<InputFile> mine;
    for (std::size_t i = rank.index; i < all.size(); i += rank.count) mine.push_back(all[i]);
    return mine;
}

void download(const store::ObjectStore& store, const std::vector<InputFile>& files,
              const fs::path& directory, const std::stop_token& stop) {
    std::uint64_t needed = 0;
    for (const InputFile& file : files) needed += file.object.bytes;
    require_space(needed, directory);
    for (const InputFile& file : files) {
        try {
            download_file(store, file, directory / file.path, stop);
        } catch (Error& error) {  // Says which object; the rest of the policy is the caller's.
            error.add_context("downloading s3://" + file.object.key);
            throw;
        }
    }
}

}  // namespace gruca::agent
