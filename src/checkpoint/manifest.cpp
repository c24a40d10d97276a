#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include "base/boundary.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/shape_json.h"

namespace gruca::checkpoint {
namespace {

constexpr std::string_view kFormat = "gruca-checkpoint";
constexpr std::int64_t kVersion = 1;
constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kStep = "step-";

Json to_json(const StoredTensor& stored) {
    Json pieces = Json::array();
    for (const Piece& piece : stored.pieces) {
        pieces.push(Json::object({{"part", piece.part},
                                  {"offset", piece.offset},
                                  {"crc32c", piece.crc32c},
                                  {"start", shape_to_json(piece.box.start)},
                                  {"extent", shape_to_json(piece.box.extent)}}));
    }
    return Json::object({{"name", stored.name},
                         {"dtype", tensor::name(stored.dtype)},
                         {"shape", shape_to_json(stored.shape)},
                         {"pieces", std::move(pieces)}});
}

Piece piece_from(const Json& json, const StoredTensor& of, const Manifest& manifest) {
    Piece piece{
        .part = static_cast<std::size_t>(json.at("part").as_int()),
        .offset = static_cast<std::uint64_t>(json.at("offset").as_int()),
        .crc32c = static_cast<std::uint32_t>(json.at("crc32c").as_int()),
        .box = {.start = shape_from(json.at("start")), .extent = shape_from(json.at("extent"))}};
    require_within(piece.box, of.shape);
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(tensor::element_count(piece.box.extent)) *
        tensor::bytes_of(of.dtype);
    if (piece.part >= manifest.part_bytes.size() || bytes > manifest.part_bytes[piece.part] ||
        piece.offset > manifest.part_bytes[piece.part] - bytes) {
        throw Error(ErrorCode::data_loss, "a piece lies outside its part, of tensor " + of.name);
    }
    return piece;
}

StoredTensor tensor_from(const Json& json, const Manifest& manifest) {
    StoredTensor stored{.name = json.at("name").as_string(),
                        .dtype = tensor::parse_dtype(json.at("dtype").as_string()),
                        .shape = shape_from(json.at("shape")),
                        .pieces = {}};
    for (const Json& piece : json.at("pieces").as_array()) {
        stored.pieces.push_back(piece_from(piece, stored, manifest));
    }
    return stored;
}

Manifest manifest_from(const Json& json) {
    Manifest manifest{.step = json.at("step").as_int(),
                      .meta = json.find("meta") != nullptr ? json.at("meta") : Json(),
                      .part_bytes = {},
                      .tensors = {}};
    for (const Json& part : json.at("parts").as_array()) {
        manifest.part_bytes.push_back(static_cast<std::uint64_t>(part.at("bytes").as_int()));
    }
    for (const Json& one : json.at("tensors").as_array()) {
        manifest.tensors.push_back(tensor_from(one, manifest));
    }
    return manifest;
}

// A manifest ends in `kNeck`, the checkpoint, `kTail`; its checksum is of the checkpoint's bytes as
// they stand there.
constexpr std::string_view kNeck = "\"checkpoint\":";
constexpr std::string_view kTail = "}\n";

std::string checksum_of(std::string_view text) {
    return fmt::format("{:08x}", crc32c(bytes_of(text)));
}

// The checkpoint's bytes, or nothing where they do not stand as we write them.
std::string_view body_of(std::string_view text) {
    const std::size_t neck = text.find(kNeck);
    if (neck == std::string_view::npos || !text.ends_with(kTail)) return {};
    text.remove_suffix(kTail.size());
    return text.substr(neck + kNeck.size());
}

}  // namespace

const StoredTensor* Manifest::find(std::string_view name) const {
    for (const StoredTensor& one : tensors) {
        if (one.name == name) return &one;
    }
    return nullptr;
}

std::string write_manifest(const Manifest& manifest) {
    Json parts = Json::array();
    for (std::size_t part = 0; part < manifest.part_bytes.size(); ++part) {
        parts.push(Json::object({{"bytes", manifest.part_bytes[part]}}));
    }
    Json tensors = Json::array();
    for (const StoredTensor& one : manifest.tensors) tensors.push(to_json(one));
    const Json inner = Json::object({{"step", manifest.step},
                                     {"meta", manifest.meta},
                                     {"parts", std::move(parts)},
                                     {"tensors", std::move(tensors)}});
    const std::string body = inner.dump();
    return fmt::format(R"({{"format":"{}","version":{},"crc32c":"{}",{}{}{})", kFormat, kVersion,
                       checksum_of(body), kNeck, body, kTail);
}

Manifest read_manifest(std::string_view text) {
    std::optional<Manifest> manifest;
    std::int64_t version = kVersion;
    const auto error = run_guarded([&] {
        const Json outer = Json::parse(text);
        if (outer.at("format").as_string() != kFormat) {
            throw Error(ErrorCode::data_loss, "not the manifest of a checkpoint");
        }
        version = outer.at("version").as_int();
        if (version != kVersion) return;
        if (outer.at("crc32c").as_string() != checksum_of(body_of(text))) {
            throw Error(ErrorCode::data_loss, "the manifest fails its checksum");
        }
        manifest = manifest_from(outer.at("checkpoint"));
        if (write_manifest(*manifest) != text) {
            throw Error(ErrorCode::data_loss, "the manifest is not as it is written");
        }
    });
    if (error) throw Error(ErrorCode::data_loss, "manifest: " + error->message());
    if (!manifest) {
        throw Error(ErrorCode::precondition_failed,
                    "the checkpoint is of a version that this program does not know: " +
                        std::to_string(version));
    }
    return std::move(*manifest);
}

void require_prefix(std::string_view prefix) {
    if (prefix.empty() || prefix.back() == '/') return;
    throw Error(ErrorCode::invalid_argument,
                "the prefix of checkpoints must end in '/': " + std::string(prefix));
}

std::string step_prefix(std::string_view prefix, std::int64_t step) {
    return fmt::format("{}{}{:08}/", prefix, kStep, step);
}

std::string manifest_key(std::string_view prefix, std::int64_t step) {
    return step_prefix(prefix, step) + std::string(kManifestName);
}

std::string part_key(std::string_view prefix, std::int64_t step, std::size_t part,
                     std::size_t parts) {
    return fmt::format("{}part-{:05}-of-{:05}", step_prefix(prefix, step), part, parts);
}

bool StepKey::is_manifest() const {
    return name == kManifestName;
}

std::optional<StepKey> parse_key(std::string_view prefix, std::string_view key) {
    if (!key.starts_with(prefix)) return std::nullopt;
    std::string_view rest = key.substr(prefix.size());
    if (!rest.starts_with(kStep)) return std::nullopt;
    rest.remove_prefix(kStep.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto step = parse_int(rest.substr(0, slash));
    if (!step || *step < 0 ||
        step_prefix("", *step) != fmt::format("{}{}/", kStep, rest.substr(0, slash))) {
        return std::nullopt;
    }
    return StepKey{.step = *step, .name = rest.substr(slash + 1)};
}

}  // namespace gruca::checkpoint
