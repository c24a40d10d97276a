#include "store/local_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/percent.h"
#include "base/text.h"

namespace gruca::store {
namespace {

constexpr std::string_view kDirectorySuffix = ".d";
constexpr std::string_view kMoreSuffix = ".more";
constexpr std::string_view kEmptyName = "%";

// A name is cut as soon as it has this many bytes. The character that reaches it, a suffix and an
// escaped suffix still fit into the 255 bytes of a file name.
constexpr std::size_t kNameBytesCut = 240;

std::size_t character_bytes(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// One piece of a segment: as much of it as one name takes.
struct Piece {
    std::string name;
    std::size_t bytes = 0;  // Of the segment.
    bool is_cut = false;
};

Piece first_piece(std::string_view segment) {
    Piece piece;
    while (piece.bytes < segment.size() && !piece.is_cut) {
        const char c = segment[piece.bytes];
        const auto byte = static_cast<unsigned char>(c);
        const std::size_t length = std::min(character_bytes(c), segment.size() - piece.bytes);
        if (byte < 0x20 || byte == 0x7F || c == '%' || (c == '.' && piece.bytes == 0)) {
            piece.name += fmt::format("%{:02X}", byte);
        } else {
            piece.name += segment.substr(piece.bytes, length);
        }
        piece.bytes += length;
        piece.is_cut = piece.name.size() >= kNameBytesCut;
    }
    if (piece.name.empty()) piece.name = kEmptyName;
    return piece;
}

// Appends the .more directories of a segment and returns its last name.
std::string spell_segment(std::string_view segment, std::vector<std::string>& directories) {
    for (;;) {
        Piece piece = first_piece(segment);
        if (!piece.is_cut) return piece.name;
        directories.push_back(piece.name.append(kMoreSuffix));
        segment.remove_prefix(piece.bytes);
    }
}

std::string file_name(std::string name) {
    for (const std::string_view suffix : {kDirectorySuffix, kMoreSuffix}) {
        if (name.ends_with(suffix)) return name.replace(name.size() - suffix.size(), 1, "%2E");
    }
    return name;
}

std::optional<std::string> unescape(std::string_view name) {
    if (name == kEmptyName) return "";
    return percent_decoded(name);
}

}  // namespace

LocalPath local_path_of(std::string_view key) {
    const std::size_t slash = key.rfind('/');
    const std::size_t last = slash == std::string_view::npos ? 0 : slash + 1;
    LocalPath path{.directories = local_directories_of(key.substr(0, last)), .file = {}};
    path.file = file_name(spell_segment(key.substr(last), path.directories));
    return path;
}

std::vector<std::string> local_directories_of(std::string_view prefix) {
    std::vector<std::string> directories;
    while (!prefix.empty()) {
        const std::size_t slash = prefix.find('/');
        directories.push_back(
            spell_segment(prefix.substr(0, slash), directories).append(kDirectorySuffix));
        prefix.remove_prefix(slash + 1);
    }
    return directories;
}

LocalName read_local_name(std::string_view name) {
    if (name.starts_with('.')) return {};
    const bool is_more = name.ends_with(kMoreSuffix);
    const bool is_segment = !is_more && name.ends_with(kDirectorySuffix);
    std::string_view stem = name;
    if (is_more) stem.remove_suffix(kMoreSuffix.size());
    if (is_segment) stem.remove_suffix(kDirectorySuffix.size());
    std::optional<std::string> text = unescape(stem);
    if (!text || !is_utf8(*text) || text->find('/') != std::string::npos) return {};
    // Only the one right spelling counts, so that no two names stand for one key.
    const Piece piece = first_piece(*text);
    if (piece.is_cut != is_more || piece.bytes != text->size()) return {};
    if ((is_more || is_segment ? piece.name : file_name(piece.name)) != stem) return {};
    if (is_segment) *text += '/';
    return {.kind = is_more || is_segment ? LocalName::Kind::directory : LocalName::Kind::object,
            .text = std::move(*text)};
}

}  // namespace gruca::store
