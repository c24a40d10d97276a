#include "agent/failure_text.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agent/beneath.h"
#include "agent/exception_line.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

constexpr std::size_t kTailBytes = 16u << 10;  // Where the last lines are looked for.
constexpr std::size_t kLinesMax = 5;
constexpr std::size_t kLineBytesMax = 300;
constexpr std::size_t kLinesBytesMax = 700;

std::string tail_of(const std::filesystem::path& file, std::size_t bytes) {
    const UniqueFd fd = open_file(file, O_RDONLY);
    const off_t size = ::lseek(fd.get(), 0, SEEK_END);
    ::lseek(fd.get(), std::max<off_t>(0, size - static_cast<off_t>(bytes)), SEEK_SET);
    std::string text(bytes, '\0');
    text.resize(read_full(fd.get(), std::as_writable_bytes(std::span(text))));
    return text;
}

// What a terminal would obey.
void remove_controls(std::string& text, std::string_view but = "") {
    std::erase_if(text, [&](char c) {
        const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
        return is_control && but.find(c) == std::string_view::npos;
    });
}

// At most `bytes_max` bytes, cut at the border of a character.
std::string cut(std::string text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return text;
    while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0u) == 0x80u) {
        --bytes_max;
    }
    text.resize(bytes_max);
    return text;
}

}  // namespace

std::string failure_file(const std::filesystem::path& ml) {
    const UniqueFd root = open_file(ml, O_RDONLY | O_DIRECTORY);
    const std::optional<UniqueFd> file = find_file_beneath(root.get(), "output/failure");
    if (!file) return "";
    std::string text(kFailureBytesMax, '\0');
    text.resize(read_full(file->get(), std::as_writable_bytes(std::span(text))));
    std::string said = repair_utf8(text);
    remove_controls(said, "\n\t");
    return cut(std::move(said), kFailureBytesMax);
}

std::string last_lines(const std::filesystem::path& log) {
    std::string tail = repair_utf8(tail_of(log, kTailBytes));
    std::replace(tail.begin(), tail.end(), '\r', '\n');
    std::vector<std::string> lines;
    for (std::string& line : split(tail, '\n')) {
        remove_controls(line);
        if (!trim(line).empty()) lines.push_back(cut(std::move(line), kLineBytesMax));
    }
    std::string text;
    std::size_t count = 0;
    for (auto line = lines.rbegin(); line != lines.rend() && count < kLinesMax; ++line, ++count) {
        if (text.size() + line->size() > kLinesBytesMax) break;
        text = text.empty() ? *line : *line + "\n" + text;
    }
    return text;
}

std::string cause_in(const std::filesystem::path& log) {
    std::string cause = exception_line(repair_utf8(tail_of(log, kCauseBytes)));
    remove_controls(cause);
    return cut(std::move(cause), kLineBytesMax);
}

std::string out_of_memory_text(const FailureFacts& facts) {
    std::string text = "out of memory on " + facts.host + ": ";
    const Usage& usage = facts.usage;
    const std::uint64_t peak = usage.memory_bytes_max.value_or(0);
    if (usage.memory_limit_bytes && !usage.limit_is_shared) {
        text += "limit " + human_bytes(*usage.memory_limit_bytes) + ", ";
    } else if (usage.memory_limit_bytes) {
        text += "limit of all jobs together " + human_bytes(*usage.memory_limit_bytes) + ", ";
    }
    if (peak > 0) text += "peak " + human_bytes(peak) + "; ";
    return text + "the kernel killed " +
           (facts.process.empty() ? "a process of the job" : "the process " + facts.process);
}

std::string failure_text(const FailureFacts& facts) {
    if (!facts.said.empty()) return facts.said;
    std::string text;
    if (facts.usage.kills_for_memory > 0) {
        text = out_of_memory_text(facts);
    } else if (facts.status.signal != 0) {
        text = "the program on " + facts.host + " was " + facts.status.describe();
    } else {
        text = "the program on " + facts.host + " failed";
    }
    if (!facts.cause.empty()) text += ": " + facts.cause;
    if (!facts.disk.empty()) text += "; " + facts.disk;
    if (!facts.lines.empty()) text += "; its last lines:\n" + facts.lines;
    return cut(std::move(text), kFailureBytesMax);
}

}  // namespace gruca::agent
