// data/documents.h
//
// Files as documents. What a file is follows from its name:
//
//   *.jsonl        a document a line, the text in one member
//   anything else  one document
//   .gz after it   the same, unpacked
//
// Text is handed on as it is, carriage returns included, but for two things: a byte order mark at
// the start of a file is dropped, and every byte that is not UTF-8 becomes U+FFFD (so does a
// surrogate without its other half in JSON). Documents that were repaired are counted.
//
// Every line of JSON is accounted for: blank ones are skipped, one that cannot be read stops the
// file with its name and the line's number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gruca::data {

// More than this in one document is refused: resource_exhausted.
inline constexpr std::uint64_t kDocumentBytesMax = 1u << 30;

struct DocumentFile {
    std::filesystem::path path;
    std::string text_field = "text";
};

struct DocumentCounts {
    std::int64_t documents = 0;
    std::int64_t bytes = 0;     // Of text.
    std::int64_t repaired = 0;  // Documents that were not quite UTF-8.
};

// Calls `visit` for each document of the file, in order.
//
// A .gz may have any number of members. One that ends early or fails its checksum is data_loss,
// bytes after the last member are ignored with a warning.
DocumentCounts for_each_document(const DocumentFile& file,
                                 const std::function<void(std::string_view text)>& visit);

// Files as they are, directories as the files below them whose names end in one of `suffixes`, in
// byte order of their paths. Throws not_found for a path that does not exist and for a directory
// that holds no such file.
std::vector<std::filesystem::path> find_files(const std::vector<std::filesystem::path>& paths,
                                              const std::vector<std::string>& suffixes);

}  // namespace gruca::data
