#include "model/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/boundary.h"
#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace gruca::model {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");
constexpr std::uint64_t kLengthBytes = 8;

void read_at(int fd, std::uint64_t offset, std::span<std::byte> into) {
    if (::lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) throw_errno("cannot seek");
    if (read_full(fd, into) != into.size()) {
        throw Error(ErrorCode::data_loss, "file ended early: it is shorter than its header says");
    }
}

// IEEE 754 binary16: a sign, five bits of exponent, ten of fraction.
float float_of_half(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16, fraction = half & 0x3ffu;
    const std::uint32_t exponent = (half >> 10) & 0x1fu;
    if (exponent == 0) {  // Zero, or too small for a leading one.
        const float size = std::ldexp(static_cast<float>(fraction), -24);
        return sign != 0 ? -size : size;
    }
    const std::uint32_t wide = exponent == 0x1f ? 0xffu : exponent + (127 - 15);
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

SafetensorsFile::Entry read_entry(const std::string& name, const Json& json) {
    SafetensorsFile::Entry entry{.name = name,
                                 .dtype = tensor::parse_dtype(json.at("dtype").as_string()),
                                 .shape = {},
                                 .begin = 0,
                                 .bytes = 0};
    for (const Json& extent : json.at("shape").as_array()) entry.shape.push_back(extent.as_int());
    const Json::Array& range = json.at("data_offsets").as_array();
    if (range.size() != 2 || range[0].as_int() < 0 || range[1].as_int() < range[0].as_int()) {
        throw Error(ErrorCode::data_loss, "data_offsets are no range");
    }
    entry.begin = static_cast<std::uint64_t>(range[0].as_int());
    entry.bytes = static_cast<std::uint64_t>(range[1].as_int() - range[0].as_int());
    const auto count = static_cast<std::uint64_t>(tensor::element_count(entry.shape));
    if (count > UINT64_MAX / 8 || count * tensor::bytes_of(entry.dtype) != entry.bytes) {
        throw Error(ErrorCode::data_loss, fmt::format("{} bytes for a tensor of shape {}",
                                                      entry.bytes, tensor::to_string(entry.shape)));
    }
    return entry;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), fd_(open_file(path, O_RDONLY)) {
    struct stat facts {};
    if (::fstat(fd_.get(), &facts) != 0) throw_errno("cannot stat " + path.string());
    read_header(static_cast<std::uint64_t>(facts.st_size));
}

void SafetensorsFile::throw_corrupt(std::string_view what) const {
    throw Error(ErrorCode::data_loss,
                fmt::format("not a sound safetensors file: {}: {}", path_.string(), what));
}

void SafetensorsFile::read_header(std::uint64_t file_bytes) {
    if (file_bytes < kLengthBytes) throw_corrupt("shorter than eight bytes");
    std::uint64_t header_bytes = 0;
    read_at(fd_.get(), 0, std::as_writable_bytes(std::span(&header_bytes, 1)));
    if (header_bytes > kSafetensorsHeaderBytesMax || header_bytes > file_bytes - kLengthBytes) {
        throw_corrupt(
            fmt::format("a header of {} bytes in a file of {}", header_bytes, file_bytes));
    }
    std::string header(header_bytes, '\0');
    read_at(fd_.get(), kLengthBytes, std::as_writable_bytes(std::span(header)));
    const auto wrong = run_guarded([&] {
        const Json json = Json::parse(header);
        for (const auto& [name, value] : json.as_object()) {
            if (name != "__metadata__") entries_.push_back(read_entry(name, value));
        }
    });
    if (wrong) throw_corrupt(wrong->message());

    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
    });
    const std::uint64_t data_bytes = file_bytes - kLengthBytes - header_bytes;
    std::uint64_t end = 0;
    for (Entry& entry : entries_) {
        if (entry.begin != end) throw_corrupt("tensors overlap or leave a hole: " + entry.name);
        if (entry.bytes > data_bytes - end) throw_corrupt("ends inside tensor " + entry.name);
        end += entry.bytes;
        entry.begin += kLengthBytes + header_bytes;
    }
    if (end != data_bytes) throw_corrupt(fmt::format("{} bytes too many", data_bytes - end));
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
    for (const Entry& entry : entries_) {
        if (entry.name == name) return &entry;
    }
    return nullptr;
}

std::vector<float> SafetensorsFile::read(const Entry& entry) const {
    std::vector<std::byte> bytes(entry.bytes);
    read_at(fd_.get(), entry.begin, bytes);
    std::vector<float> values(bytes.size() / tensor::bytes_of(entry.dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (entry.dtype == tensor::Dtype::f32) {
            std::memcpy(&values[i], bytes.data() + 4 * i, 4);
        } else if (entry.dtype == tensor::Dtype::bf16) {
            std::uint16_t upper = 0;  // A bfloat16 is the upper half of a float.
            std::memcpy(&upper, bytes.data() + 2 * i, 2);
            values[i] = std::bit_cast<float>(std::uint32_t{upper} << 16);
        } else if (entry.dtype == tensor::Dtype::f16) {
            std::uint16_t half = 0;
            std::memcpy(&half, bytes.data() + 2 * i, 2);
            values[i] = float_of_half(half);
        } else {
            double value = 0;
            std::memcpy(&value, bytes.data() + 8 * i, 8);
            values[i] = static_cast<float>(value);
        }
    }
    return values;
}

namespace {

std::string header_of(const std::vector<TensorToWrite>& tensors) {
    Json header = Json::object({{"__metadata__", Json::object({{"format", "pt"}})}});
    std::int64_t at = 0;
    for (const TensorToWrite& one : tensors) {
        const std::int64_t end = at + 4 * tensor::element_count(one.shape);
        Json shape = Json::array();
        for (const std::int64_t extent : one.shape) shape.push(extent);
        header.set(one.name, Json::object({{"dtype", "F32"},
                                           {"shape", shape},
                                           {"data_offsets", Json::array({at, end})}}));
        at = end;
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');  // The data starts aligned.
    return text;
}

void write_tensors(int fd, const std::vector<TensorToWrite>& tensors) {
    const std::string header = header_of(tensors);
    const std::uint64_t header_bytes = header.size();
    write_all(fd, std::as_bytes(std::span(&header_bytes, 1)));
    write_all(fd, bytes_of(header));
    for (const TensorToWrite& one : tensors) {
        const std::vector<float> values = one.values();
        CHECK(std::ssize(values) == tensor::element_count(one.shape), "tensor {}", one.name);
        write_all(fd, std::as_bytes(std::span(values)));
    }
    if (::fsync(fd) != 0) throw_errno("cannot sync");
}

}  // namespace

void write_safetensors(const std::filesystem::path& path,
                       const std::vector<TensorToWrite>& tensors) {
    const std::filesystem::path partial = path.string() + ".partial";
    const auto failed = run_guarded([&] {
        const UniqueFd fd = open_file(partial, O_WRONLY | O_CREAT | O_TRUNC);
        write_tensors(fd.get(), tensors);
        std::filesystem::rename(partial, path);
        sync_directory(path.parent_path());
    });
    if (!failed) return;
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw Error(failed->code(),
                fmt::format("cannot write {}: {}", path.string(), failed->message()));
}

}  // namespace gruca::model
