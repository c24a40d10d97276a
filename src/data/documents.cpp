#include "data/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/byte_source.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = 64u << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacementEscape = "\\ufffd";

[[noreturn]] void throw_too_large(const fs::path& path) {
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("a document has more than {}, the most that is taken as one: {}",
                            human_bytes(kDocumentBytesMax), path.string()));
}

bool is_json_lines(const fs::path& path) {
    const fs::path name = path.extension() == ".gz" ? path.stem() : path;
    return name.extension() == ".jsonl";
}

// The UTF-16 unit that the escape at `at` ("\uXXXX") stands for, or -1.
int unit_at(std::string_view json, std::size_t at) {
    if (at + 6 > json.size() || json[at] != '\\' || json[at + 1] != 'u') return -1;
    int unit = 0;
    for (const char c : json.substr(at + 2, 4)) {
        const char* digits = "0123456789abcdef";
        const char* digit = std::strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c);
        if (c == 0 || digit == nullptr) return -1;
        unit = unit * 16 + static_cast<int>(digit - digits);
    }
    return unit;
}

// Replaces escaped surrogates without their other half; a JSON parser refuses them.
bool replace_lone_surrogates(std::string& json) {
    bool replaced = false;
    for (std::size_t at = json.find('\\'); at != std::string::npos; at = json.find('\\', at)) {
        const int unit = unit_at(json, at);
        const bool is_high = unit >= 0xD800 && unit < 0xDC00;
        const bool is_low = unit >= 0xDC00 && unit < 0xE000;
        const int next = is_high ? unit_at(json, at + 6) : -1;
        if (is_high && next >= 0xDC00 && next < 0xE000) {
            at += 12;
        } else if (is_high || is_low) {
            json.replace(at, 6, kReplacementEscape);
            replaced = true;
            at += 6;
        } else {
            at += 2;  // Another escape; a doubled backslash counts as one.
        }
    }
    return replaced;
}

// Hands on documents and counts them.
class Collector {
  public:
    explicit Collector(const std::function<void(std::string_view)>& visit) : visit_(visit) {}

    void add(std::string_view text, bool is_repaired) {
        if (is_utf8(text)) {
            emit(text, is_repaired);
        } else {
            emit(repair_utf8(text), true);
        }
    }

    const DocumentCounts& counts() const { return counts_; }

  private:
    void emit(std::string_view text, bool is_repaired) {
        ++counts_.documents;
        counts_.repaired += is_repaired;
        counts_.bytes += static_cast<std::int64_t>(text.size());
        visit_(text);
    }

    const std::function<void(std::string_view)>& visit_;
    DocumentCounts counts_;
};

void read_text(const DocumentFile& file, Collector& collector) {
    const std::unique_ptr<ByteSource> source = open_bytes(file.path);
    std::string text;
    for (std::size_t got = 1; got > 0;) {
        const std::size_t size = text.size();
        text.resize(size + kReadBytes);
        got = source->read(std::span(text).subspan(size));
        text.resize(size + got);
        if (text.size() > kDocumentBytesMax) throw_too_large(file.path);
    }
    std::string_view body = text;
    if (body.starts_with(kByteOrderMark)) body.remove_prefix(kByteOrderMark.size());
    collector.add(body, false);
}

void read_json_line(const DocumentFile& file, std::int64_t number, std::string& line,
                    Collector& collector) {
    if (trim(line).empty()) return;
    bool is_repaired = false;
    if (!is_utf8(line)) {
        line = repair_utf8(line);
        is_repaired = true;
    }
    is_repaired |= replace_lone_surrogates(line);
    const auto place = [&] { return fmt::format("{}:{}", file.path.string(), number); };
    try {
        const Json json = Json::parse(line);
        const Json* text = json.find(file.text_field);
        if (text == nullptr || !text->is_string()) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("the line has no text in the member {}", file.text_field));
        }
        collector.add(text->as_string(), is_repaired);
    } catch (Error& error) {
        if (error.code() == ErrorCode::invalid_argument) error.add_context("reading " + place());
        throw;
    }
}

void read_json_lines(const DocumentFile& file, Collector& collector) {
    const std::unique_ptr<ByteSource> source = open_bytes(file.path);
    std::string line;
    std::string buffer(kReadBytes, '\0');
    std::int64_t number = 0;
    const auto finish_line = [&] {
        if (++number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
        read_json_line(file, number, line, collector);
        line.clear();
    };
    for (std::size_t got = 0; (got = source->read(buffer)) > 0;) {
        std::string_view piece(buffer.data(), got);
        for (std::size_t end = 0; (end = piece.find('\n')) != std::string_view::npos;) {
            line += piece.substr(0, end);
            piece.remove_prefix(end + 1);
            finish_line();
        }
        line += piece;
        if (line.size() > kDocumentBytesMax) throw_too_large(file.path);
    }
    if (!line.empty()) finish_line();
}

}  // namespace

DocumentCounts for_each_document(const DocumentFile& file,
                                 const std::function<void(std::string_view text)>& visit) {
    Collector collector(visit);
    if (is_json_lines(file.path)) {
        read_json_lines(file, collector);
    } else {
        read_text(file, collector);
    }
    return collector.counts();
}

std::vector<fs::path> find_files(const std::vector<fs::path>& paths,
                                 const std::vector<std::string>& suffixes) {
    std::vector<fs::path> files;
    for (const fs::path& path : paths) {
        if (!fs::exists(path)) {
            throw Error(ErrorCode::not_found, "no such file or directory: " + path.string());
        }
        if (!fs::is_directory(path)) {
            files.push_back(path);
            continue;
        }
        std::vector<std::string> found;
        for (const auto& entry : fs::recursive_directory_iterator(path)) {
            const std::string name = entry.path().string();
            const bool counts = std::any_of(suffixes.begin(), suffixes.end(),
                                            [&](const auto& end) { return name.ends_with(end); });
            if (counts && entry.is_regular_file()) found.push_back(name);
        }
        if (found.empty()) {
            throw Error(ErrorCode::not_found,
                        fmt::format("no file that ends in one of {} below the directory: {}",
                                    fmt::join(suffixes, ", "), path.string()));
        }
        std::sort(found.begin(), found.end());
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

}  // namespace gruca::data
