#include "agent/oom_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.h"
#include "base/text.h"

namespace gruca::agent {
namespace {

constexpr std::size_t kRecordBytes = 8192;  // One read gives one record, never longer.
constexpr int kRecordsMax = 1'000'000;

}  // namespace

std::optional<std::string> oom_victim_in(std::string_view record, const std::string& group) {
    const std::string mark = "/" + group + ",task=";
    const std::size_t at = record.find(mark);
    if (record.find("oom-kill:") == std::string_view::npos || at == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view rest = record.substr(at + mark.size());
    // The name may hold a comma itself.
    return repair_utf8(rest.substr(0, rest.rfind(",pid=")));
}

std::optional<std::string> oom_victim(const std::string& group, const std::filesystem::path& log) {
    const UniqueFd fd(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    std::optional<std::string> victim;
    std::array<char, kRecordBytes> record;
    for (int i = 0; fd.is_open() && i < kRecordsMax; ++i) {
        const ssize_t got = ::read(fd.get(), record.data(), record.size());
        if (got < 0 && errno == EPIPE) continue;  // Overwritten before it was read.
        if (got <= 0) break;
        const std::string_view text(record.data(), static_cast<std::size_t>(got));
        if (auto found = oom_victim_in(text, group)) victim = std::move(found);
    }
    return victim;
}

}  // namespace gruca::agent
