#include "store/object_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/percent.h"
#include "base/text.h"
#include "store/local_store.h"

namespace gruca::store {
namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr int kGetAttemptsMax = 100;
constexpr std::uint64_t kCopyBytes = 1u << 20;

[[noreturn]] void throw_bad_uri(std::string_view uri, std::string_view why) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}; a store is named file:///directory, not: {}", why, uri));
}

}  // namespace

void append_by_reading(ObjectWriter& to, const ObjectReader& from, std::uint64_t offset,
                       std::uint64_t bytes) {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(bytes, kCopyBytes));
    while (bytes > 0) {
        const auto piece = std::span(buffer).first(std::min<std::uint64_t>(bytes, kCopyBytes));
        if (from.read(offset, piece) != piece.size()) {
            throw Error(ErrorCode::data_loss,
                        "an object ends before the range that is copied: " + from.info().key);
        }
        to.write(piece);
        offset += piece.size();
        bytes -= piece.size();
    }
}

PutOutcome ObjectStore::put(std::string_view key, std::span<const std::byte> body,
                            PutOptions options) {
    const std::unique_ptr<ObjectWriter> writer = begin_put(key, options);
    writer->write(body);
    return writer->commit();
}

PutOutcome ObjectStore::put(std::string_view key, std::string_view body, PutOptions options) {
    return put(key, bytes_of(body), options);
}

std::string ObjectStore::get(std::string_view key, std::uint64_t bytes_max) const {
    for (int attempt = 0; attempt < kGetAttemptsMax; ++attempt) {
        const std::optional<ObjectInfo> info = find(key);
        if (!info) {
            throw Error(ErrorCode::not_found, fmt::format("no object has the key: {}", key));
        }
        if (info->bytes > bytes_max) {
            throw Error(ErrorCode::resource_exhausted,
                        fmt::format("object of {} is larger than {}, the most that is read whole: "
                                    "{}",
                                    human_bytes(info->bytes), human_bytes(bytes_max), key));
        }
        // One call reads from one version. A full buffer means a longer one has come meanwhile.
        std::string body(info->bytes + 1, '\0');
        const std::size_t got = read(key, 0, std::as_writable_bytes(std::span(body)));
        if (got == body.size()) continue;
        body.resize(got);
        return body;
    }
    throw Error(ErrorCode::unavailable,
                fmt::format("object is replaced faster than it can be read: {}", key));
}

bool ObjectStore::remove_directory(std::string_view prefix) {
    return list({.prefix = std::string(prefix), .keys_max = 1}).objects.empty();
}

void ObjectStore::for_each(std::string_view prefix,
                           const std::function<void(const ObjectInfo&)>& visit) const {
    ListRequest request{.prefix = std::string(prefix)};
    for (bool more = true; more;) {
        const ListPage page = list(request);
        for (const ObjectInfo& info : page.objects) visit(info);
        more = page.truncated;
        if (more) request.after = page.objects.back().key;
    }
}

void require_valid_key(std::string_view key) {
    if (key.empty()) throw Error(ErrorCode::invalid_argument, "the key of an object is empty");
    if (key.size() > kKeyBytesMax) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the key of an object has {} bytes, more than {}: {}...",
                                key.size(), kKeyBytesMax, repair_utf8(key.substr(0, 64))));
    }
    if (!is_utf8(key)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the key of an object is not UTF-8: {}", repair_utf8(key)));
    }
}

std::unique_ptr<ObjectStore> open_store(std::string_view uri) {
    if (!uri.starts_with(kFileScheme)) throw_bad_uri(uri, "unknown kind of store");
    const std::string_view encoded = uri.substr(kFileScheme.size());
    if (!encoded.starts_with('/')) throw_bad_uri(uri, "the directory is not absolute");
    const auto path = percent_decoded(encoded);
    if (!path || path->find('\0') != std::string::npos) {
        throw_bad_uri(uri, "malformed % in the URI");
    }
    return std::make_unique<LocalStore>(*path);
}

std::string file_uri(const std::filesystem::path& directory) {
    const std::string path = directory.string();
    if (!directory.is_absolute()) {
        throw Error(ErrorCode::invalid_argument, "the directory is not absolute: " + path);
    }
    std::string uri(kFileScheme);
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte <= 0x20 || byte >= 0x7F || c == '%' || c == '?' || c == '#') {
            uri += fmt::format("%{:02X}", byte);
        } else {
            uri += c;
        }
    }
    return uri;
}

}  // namespace gruca::store
