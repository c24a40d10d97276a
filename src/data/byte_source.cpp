#include "data/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;

class PlainSource final : public ByteSource {
  public:
    explicit PlainSource(const fs::path& path) : path_(path), fd_(open_file(path, O_RDONLY)) {}

    std::size_t read(std::span<char> into) override {
        try {
            return read_full(fd_.get(), std::as_writable_bytes(into));
        } catch (Error& error) {
            error.add_context("reading " + path_.string());
            throw;
        }
    }

  private:
    const fs::path path_;
    const UniqueFd fd_;
};

// Every member of the file, one after the other.
class GzipSource final : public ByteSource {
  public:
    explicit GzipSource(const fs::path& path) : path_(path), packed_(path) {
        constexpr int kGzipOnly = 16 + MAX_WBITS;
        const int status = ::inflateInit2(&stream_, kGzipOnly);
        CHECK(status == Z_OK, "inflateInit2 returns {}", status);
    }
    ~GzipSource() override { ::inflateEnd(&stream_); }
    GzipSource(const GzipSource&) = delete;
    GzipSource& operator=(const GzipSource&) = delete;

    std::size_t read(std::span<char> into) override {
        stream_.next_out = reinterpret_cast<Bytef*>(into.data());
        stream_.avail_out = static_cast<uInt>(into.size());
        while (stream_.avail_out > 0 && !at_end_) step();
        return into.size() - stream_.avail_out;
    }

  private:
    void step() {
        if (stream_.avail_in == 0) refill();
        if (stream_.avail_in == 0) {
            if (in_member_ || members_ == 0) throw_damage("ends in the middle");
            at_end_ = true;
            return;
        }
        in_member_ = true;
        const int status = ::inflate(&stream_, Z_NO_FLUSH);
        if (status == Z_STREAM_END) {
            ++members_;
            in_member_ = false;
            ::inflateReset(&stream_);
            start_next_member();
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            throw_damage(stream_.msg != nullptr ? stream_.msg : "cannot be unpacked");
        }
    }

    // What follows a member and begins otherwise than one is not data.
    void start_next_member() {
        if (stream_.avail_in == 0) refill();
        constexpr Bytef kMagicFirst = 0x1F;
        if (stream_.avail_in == 0 || *stream_.next_in == kMagicFirst) return;
        log_warning("data: bytes after the end of the gzip data are ignored: {}", path_.string());
        at_end_ = true;
    }

    void refill() {
        const std::size_t got = packed_.read(buffer_);
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_in = static_cast<uInt>(got);
    }

    [[noreturn]] void throw_damage(std::string_view what) const {
        throw Error(ErrorCode::data_loss,
                    fmt::format("the gzip file is damaged ({}, member {}): {}", what, members_ + 1,
                                path_.string()));
    }

    const fs::path path_;
    PlainSource packed_;
    std::array<char, 64u << 10> buffer_;
    z_stream stream_ = {};
    int members_ = 0;
    bool in_member_ = false;
    bool at_end_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const fs::path& path) {
    if (path.extension() == ".gz") return std::make_unique<GzipSource>(path);
    return std::make_unique<PlainSource>(path);
}

}  // namespace gruca::data
